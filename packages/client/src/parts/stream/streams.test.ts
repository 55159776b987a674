import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestClient } from '../../dev/testing/index.js'
import type { ClientError } from '../../index.js'
import { openStream, readStream, type StreamPart, stopStream } from './index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** Runs everything that needs no time. */
const settle = () => vi.advanceTimersByTimeAsync(0)
/** Longer than any of the first retries. */
const retry = () => vi.advanceTimersByTimeAsync(2_000)

const KEY = 'chat.42.answer.7'

function pair() {
  const { client: writing, server } = createTestClient()
  const { client: reading } = createTestClient({ server })
  for (const client of [writing, reading]) client.on('error', (error) => errors.push(error))
  const errors: ClientError[] = []
  return { writing, reading, server, errors }
}

const streamFrames = (server: ReturnType<typeof pair>['server']) =>
  server.received.flatMap((message) =>
    message.verb === 'stream' ? [{ ...message, payload: Buffer.from(message.payload).toString() }] : [],
  )

/** Ends a stream whose writer gets the answer over its next connection. The end counts, whatever comes in between. */
async function endUnanswered(between: (clients: ReturnType<typeof pair>) => Promise<void>): Promise<void> {
  const clients = pair()
  const { writing, reading, server } = clients
  const reader = readStream(KEY, { client: reading })
  const writer = await openStream(KEY, { client: writing })
  await settle()
  server.loseAnswer('stream')
  const ended = writer.end('result')
  await between(clients)
  server.drop()
  await retry()
  await ended
  expect([writer.signal.aborted, reader.status, reader.result]).toEqual([false, 'end', 'result'])
}

describe('a stream', () => {
  // Symptom: a stream was lost after its broker had been away for a minute, though its writer was connected all the time. Cause:
  // the writer waited up to 20 s before it sent its message again, and said nothing meanwhile.
  it('is heard of within its lease while the server cannot take more of it', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.999)
    const { writing, server } = pair()
    const writer = await openStream(KEY, { client: writing })
    for (let count = 0; count < 12; count++) server.refuse('stream', 'E_BROKER_UNAVAILABLE')
    const appended = writer.append('x')
    let silentMs = 0
    for (let seenCount = 0, atMs = 0; atMs < 60_000; atMs += 100) {
      await vi.advanceTimersByTimeAsync(100)
      const sentCount = streamFrames(server).length
      silentMs = sentCount > seenCount ? 0 : silentMs + 100
      seenCount = sentCount
      expect(silentMs).toBeLessThan(5_000)
    }
    await appended
  })

  it('is text that is written, read from its beginning by latecomers, and ends', async () => {
    const { writing, reading } = pair()
    const writer = await openStream(KEY, { client: writing, meta: { model: 'm' } })
    await writer.append('Hello, ')
    const reader = readStream(KEY, { client: reading })
    const parts: StreamPart[] = []
    reader.onText((part) => parts.push(part))
    await reader.ready
    expect([reader.status, reader.content, reader.meta, reader.id]).toEqual([
      'active',
      'Hello, ',
      { model: 'm' },
      writer.id,
    ])
    await writer.append('world')
    await writer.end({ tokens: 2 })
    expect(await reader.text()).toBe('Hello, world')
    expect([reader.status, reader.result, reader.isCut]).toEqual(['end', { tokens: 2 }, false])
    expect(parts).toEqual([
      { text: 'Hello, ', isWhole: true },
      { text: 'world', isWhole: false },
    ])
    for (const late of [writer.append('!'), writer.end(), writer.fail(undefined)])
      await expect(late).rejects.toMatchObject({
        code: 'E_STREAM_ENDED',
        message: expect.stringContaining('has ended'),
      })
  })

  // Symptom: these were taken, nothing was written, and the next text was refused. Cause: what is no text was taken for bytes.
  it('refuses what is neither text nor bytes, and goes on', async () => {
    const { writing, reading } = pair()
    const writer = await openStream(KEY, { client: writing })
    for (const content of [5, true, null, undefined, ['a'], { delta: 'x' }, new Map(), Symbol('x')])
      await expect(writer.append(content as never)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    await writer.append('')
    await writer.append('text')
    await expect(writer.append(new Uint8Array([65]))).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    for (const result of [1n, () => 0]) {
      await expect(writer.end(result as never)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
      await expect(openStream('other', { client: writing, meta: result })).rejects.toMatchObject({
        code: 'E_PAYLOAD_INVALID',
      })
    }
    await writer.end()
    expect(await readStream(KEY, { client: reading }).text()).toBe('text')
  })

  it('takes the bytes that publish takes, and copies them', async () => {
    const { writing, reading } = pair()
    const writer = await openStream(KEY, { client: writing })
    const all = new Uint8Array([1, 2, 3, 4])
    const contents = [
      all.buffer,
      new DataView(all.buffer, 1, 2),
      new Uint16Array(all.buffer),
      Buffer.from(all.buffer, 2),
    ]
    const appends = contents.map((content) => writer.append(content))
    all.fill(0)
    await Promise.all(appends)
    await writer.end()
    expect([...(await readStream(KEY, { client: reading }).bytes())]).toEqual([1, 2, 3, 4, 2, 3, 1, 2, 3, 4, 3, 4])
  })

  // Symptom: after the loop, `status` and `result` were those of the next stream of the key (NATS seed 502 of the checker).
  it('is what its reader tells of, as long as it is iterated over, also when another one has begun', async () => {
    const { writing, reading } = pair()
    const writer = await openStream(KEY, { client: writing })
    await writer.append('1')
    const reader = readStream(KEY, { client: reading })
    const parts = reader[Symbol.asyncIterator]()
    expect(await parts.next()).toMatchObject({ value: { text: '1' } })
    await writer.end('first')
    const next = await openStream(KEY, { client: writing })
    await next.append('2')
    await settle()
    expect(await parts.next()).toEqual({ done: true, value: undefined })
    expect([reader.id, reader.status, reader.result, reader.content]).toEqual([writer.id, 'end', 'first', '1'])
  })

  // Readers in Python, Go and over SSE got two broken characters: an append was cut by UTF-16 units, and sent as it came.
  it('never cuts a character in two, and sends half a one only at the end', async () => {
    const { writing, reading, server } = pair()
    const writer = await openStream(KEY, { client: writing })
    const text = `x${'🙂'.repeat(30_000)}`
    await writer.append(text)
    for (const unit of '🙂🙃'.split('')) await writer.append(unit)
    await writer.append('\ud83d')
    await writer.append('?\ud83d')
    await writer.end()
    expect(await readStream(KEY, { client: reading }).text()).toBe(`${text}🙂🙃\ud83d?\ud83d`)
    const appends = streamFrames(server).flatMap(({ kind, payload }) =>
      kind === 'append' ? [JSON.parse(payload)] : [],
    )
    expect(appends.filter((append) => append !== '').slice(-4)).toEqual(['🙂', '🙃', '\ud83d?', '\ud83d'])
    expect(appends.length).toBeGreaterThan(5)
    expect(appends.slice(0, -3).filter((append) => !append.isWellFormed())).toEqual([])
  })

  it('is iterated over from its beginning to its end', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading })
    const texts: unknown[] = []
    const loop = (async () => {
      for await (const { text, isWhole } of reader) texts.push([text, isWhole])
    })()
    const writer = await openStream(KEY, { client: writing })
    await writer.append('a')
    await settle()
    await writer.append('b')
    await settle()
    await writer.end()
    await loop
    expect(texts).toEqual([
      ['a', true],
      ['b', false],
    ])
    await settle()
  })

  it('merges appends that wait, one message being on its way', async () => {
    const { writing, server } = pair()
    const writer = await openStream(KEY, { client: writing })
    const appends = ['a', 'b', 'c'].map((text) => writer.append(text))
    await Promise.all([...appends, writer.end()])
    expect(streamFrames(server).map(({ kind, sequence, payload }) => [kind, sequence, payload])).toEqual([
      ['start', 0, ''],
      ['append', 1, '"abc"'],
      ['end', 2, ''],
    ])
  })

  it('sends the same message again after a lost connection, and none is there twice', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    server.loseAnswer('stream')
    const first = writer.append('a')
    await settle()
    const second = writer.append('b')
    server.drop()
    await retry()
    await Promise.all([first, second, writer.end()])
    expect(await reader.text()).toBe('ab')
    expect(
      streamFrames(server)
        .filter(({ kind }) => kind === 'append')
        .map(({ sequence, payload }) => [sequence, payload]),
    ).toEqual([
      [1, '"a"'],
      [1, '"a"'],
      [2, '"b"'],
    ])
  })

  it('tries again what a broker could not take', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    server.refuse('stream', 'E_BROKER_UNAVAILABLE')
    const append = writer.append('a')
    await retry()
    await append
    await writer.end()
    expect(await reader.text()).toBe('a')
  })

  it('has one writer', async () => {
    const { writing, reading } = pair()
    await openStream(KEY, { client: writing })
    await expect(openStream(KEY, { client: reading })).rejects.toMatchObject({ code: 'E_STREAM_BUSY' })
  })

  it('is followed by the next one of its key', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading })
    const parts: unknown[] = []
    reader.onText(({ text, isWhole }) => parts.push([text, isWhole]))
    for (const text of ['one', 'two']) {
      const writer = await openStream(KEY, { client: writing })
      await writer.append(text)
      await writer.end()
      await settle()
    }
    expect([reader.content, parts]).toEqual([
      'two',
      [
        ['one', true],
        ['two', true],
      ],
    ])
  })

  it('is one of its name, if the reader asks for it', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading, id: 'b' })
    for (const id of ['a', 'b']) {
      const writer = await openStream(KEY, { client: writing, id })
      await writer.append(id)
      await writer.end()
    }
    expect(await reader.text()).toBe('b')
  })

  it('is of bytes as well', async () => {
    const { writing, reading } = pair()
    const writer = await openStream(KEY, { client: writing })
    await writer.append(new Uint8Array([1, 2]))
    const reader = readStream(KEY, { client: reading })
    await reader.ready
    await writer.append(new Uint8Array([255]))
    await expect(writer.append('text')).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    await writer.end()
    expect([...(await reader.bytes())]).toEqual([1, 2, 255])
  })

  it('fails with the error of its writer, of which only a WebMQError is shown', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    await writer.fail(new Error('secret'))
    await expect(reader.text()).rejects.toMatchObject({
      code: 'E_RESPONSE',
      message: expect.stringContaining('the writer has failed'),
    })
    expect(reader.status).toBe('fail')
  })

  it('fails when its writer is disposed of before its end', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading })
    await (await openStream(KEY, { client: writing }))[Symbol.asyncDispose]()
    await expect(reader.text()).rejects.toMatchObject({ code: 'E_RESPONSE' })
  })

  it('is lost when its writer is given up, which learns of it', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    await writer.append('half')
    server.loseStream(KEY)
    await expect(reader.text()).rejects.toMatchObject({ code: 'E_STREAM_ENDED' })
    expect([reader.status, reader.content]).toEqual(['lost', 'half'])
    await expect(writer.append('more')).rejects.toMatchObject({ code: 'E_STREAM_ENDED' })
    // Node would end the process: nobody awaits these, and the signal tells it.
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    void writer.append('more')
    void writer.end()
    await settle()
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
    expect(writer.signal.aborted).toBe(true)
  })

  it('has beats while its writer is silent, and they change nothing', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    await openStream(KEY, { client: writing })
    await vi.advanceTimersByTimeAsync(60_000)
    const beats = streamFrames(server).filter(({ kind }) => kind === 'beat')
    expect(beats.length).toBeGreaterThan(10)
    expect([reader.status, reader.content]).toEqual(['active', ''])
    expect(server.received.filter(({ verb }) => verb === 'read')).toHaveLength(1)
  })

  // Symptom: the signal of a writer that had ended its stream was aborted, since its beat came behind the end (NATS seed 5).
  it('has ended well, though a beat finds the end in the log before its writer has the answer', async () => {
    await endUnanswered(async ({ server }) => {
      await vi.advanceTimersByTimeAsync(4_000)
      expect(streamFrames(server).map(({ kind }) => kind)).toEqual(['start', 'end', 'beat'])
    })
  })

  it('is lost when nothing comes and the log does not have it', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    await writer.append('half')
    await settle()
    await writing.close()
    server.restartHistory()
    server.drop()
    await vi.advanceTimersByTimeAsync(90_000)
    expect([reader.status, reader.content]).toEqual(['lost', 'half'])
  })
})

describe('a stop', () => {
  it('reaches the writer once, whoever asks how often, and the stream ends as stopped', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    let stopCount = 0
    writer.signal.addEventListener('abort', () => stopCount++)
    await writer.append('half')
    await settle()
    await reader.stop('enough')
    await Promise.all([reader.stop(), stopStream(KEY, { client: writing })])
    expect([stopCount, (writer.signal.reason as Error).message]).toEqual([1, expect.stringContaining('enough')])
    await writer.append('!')
    await writer.end({ tokens: 1 })
    expect(await reader.text()).toBe('half!')
    expect([reader.status, reader.result]).toEqual(['stop', undefined])
    await reader.stop()
    await expect(stopStream(KEY, { client: reading })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  })

  it('changes nothing once the end is on its way', async () => {
    await endUnanswered(async ({ reading }) => {
      await settle()
      await stopStream(KEY, { client: reading })
    })
  })

  it('is repeated until a writer that reconnects has it', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    await settle()
    server.ignore('request')
    const stopped = reader.stop()
    await settle()
    server.drop()
    await vi.advanceTimersByTimeAsync(5_000)
    await stopped
    expect(writer.signal.aborted).toBe(true)
  })
})

describe('what readers send', () => {
  it('reaches the writer, which replies', async () => {
    const { writing, reading } = pair()
    const reader = readStream(KEY, { client: reading })
    const writer = await openStream(KEY, { client: writing })
    await expect(reader.send(1)).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    writer.onMessage((data) => ({ got: data }))
    expect(await reader.send({ shorter: true })).toEqual({ got: { shorter: true } })
  })
})

describe('a reader', () => {
  it('takes everything anew after a gap in which it missed something', async () => {
    const { writing, reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const parts: unknown[] = []
    reader.onText(({ text, isWhole }) => parts.push([text, isWhole]))
    const writer = await openStream(KEY, { client: writing })
    await writer.append('a')
    await settle()
    server.expireHistory()
    server.gap(KEY)
    await settle()
    expect(parts).toEqual([['a', true]])
    await writer.append('b')
    await writer.end()
    expect(await reader.text()).toBe('ab')
  })

  it('ends with the error of a server that refuses', async () => {
    const { reading, server, errors } = pair()
    server.refuse('read', 'E_UNSUPPORTED')
    const reader = readStream(KEY, { client: reading })
    await expect(reader.ready).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    await expect(reader.text()).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    expect(errors).toHaveLength(1)
    expect(reader.error).toMatchObject({ code: 'E_UNSUPPORTED' })
  })

  it('ends its loop and its listen when it is closed', async () => {
    const { reading, server } = pair()
    const reader = readStream(KEY, { client: reading })
    const loop = (async () => {
      for await (const _ of reader);
    })()
    await settle()
    reader.close()
    await loop
    await settle()
    expect(server.patterns).toEqual([])
    await expect(reader.text()).rejects.toMatchObject({ code: 'E_CLOSED' })
  })
})
