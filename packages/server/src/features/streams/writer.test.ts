import { afterEach, describe, expect, it, vi } from 'vitest'
import { FakeServer } from '../../../test/fake-server.js'

const fakes: FakeServer[] = []

async function start(options = {}) {
  const fake = await FakeServer.start({ history: ['#=1000'], ...options })
  fakes.push(fake)
  return fake.server
}

afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.server.stop({ drainMs: 0 })))
})

describe('server.stream', () => {
  it('writes a text that server.readStream reads, and merges what comes at once', async () => {
    const server = await start()
    const places: (string | undefined)[] = []
    await server.listen('a', (_, { stream }) => places.push(stream?.replace(/^[^:]+/, ''))).ready
    const stream = await server.stream('a', { meta: { of: 'm' } })
    const texts = Array.from({ length: 50 }, (_, index) => `${index} `)
    await Promise.all(texts.map((text) => stream.append(text)))
    expect(await server.readStream('a')).toMatchObject({
      id: stream.id,
      status: 'active',
      text: texts.join(''),
      meta: { of: 'm' },
    })
    await stream.end(7)
    await vi.waitFor(() => expect(places).toEqual([':0:start', ':1:append', ':2:end']))
    expect(await server.readStream('a')).toMatchObject({ status: 'end', text: texts.join(''), result: 7, isCut: false })
    await expect(stream.append('late')).rejects.toThrow('the stream has ended')
  })

  it('splits what is larger than a message, also bytes', async () => {
    const server = await start({ maxPayloadBytes: 100 })
    const stream = await server.stream('a')
    const bytes = Uint8Array.from({ length: 250 }, (_, index) => index)
    const done = stream.append(bytes)
    await done
    await stream.end()
    expect((await server.readStream('a')).bytes).toEqual(bytes)
    const text = await server.stream('a')
    await text.append('\u0007'.repeat(200))
    await text.end()
    expect((await server.readStream('a')).text).toBe('\u0007'.repeat(200))
  })

  // Readers in Python, Go and over SSE got two broken characters: an append was cut by UTF-16 units, and sent as it came.
  it('never cuts a character in two, and sends half a one only at the end', async () => {
    const server = await start({ maxPayloadBytes: 100 })
    const payloads: unknown[] = []
    await server.listen('a', (payload, { stream }) => /append$/.test(stream ?? '') && payloads.push(payload)).ready
    const stream = await server.stream('a')
    const text = `x${'🙂'.repeat(50)}`
    await stream.append(text)
    for (const unit of '🙂🙃'.split('')) await stream.append(unit)
    await stream.append('\ud83d')
    await stream.append('?\ud83d')
    await stream.end()
    expect((await server.readStream('a')).text).toBe(`${text}🙂🙃\ud83d?\ud83d`)
    await vi.waitFor(() => expect(payloads.join('')).toBe(`${text}🙂🙃\ud83d?\ud83d`))
    expect(payloads.slice(-4)).toEqual(['🙂', '🙃', '\ud83d?', '\ud83d'])
    expect(
      payloads.slice(0, -2).filter((payload) => /^[\udc00-\udfff]|[\ud800-\udbff]$/.test(String(payload))),
    ).toEqual([])
  })

  it('keeps no more than 4 MiB that wait', async () => {
    const server = await start()
    const stream = await server.stream('a')
    await expect(stream.append(new Uint8Array(5 * 1_048_576))).rejects.toMatchObject({ code: 'E_QUEUE_FULL' })
    const texts = Array.from({ length: 20_000 }, () => stream.append('x'))
    const refused = (await Promise.allSettled(texts)).filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(20_000 - Math.ceil((4 * 1_048_576) / 257))
    await stream.append('y')
    await stream.end()
    expect((await server.readStream('a')).text).toBe(`${'x'.repeat(20_000 - refused.length)}y`)
  })

  // Symptom: a list ended the process, and a number never settled; `end` then blocked the event loop. Cause: nothing was checked,
  // and what was thrown left the writer busy.
  it('refuses what is neither text nor bytes, and goes on', async () => {
    const server = await start()
    const stream = await server.stream('a')
    for (const piece of [
      5,
      true,
      null,
      undefined,
      ['x'],
      { delta: 'x' },
      new ArrayBuffer(3),
      new DataView(new ArrayBuffer(3)),
    ])
      await expect(stream.append(piece as never)).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
    await stream.append('text')
    await expect(stream.append(new Uint8Array(5 * 1_048_576) as never)).rejects.toMatchObject({
      code: 'E_PAYLOAD_INVALID',
    })
    await expect(stream.append('x'.repeat(5 * 1_048_576))).rejects.toMatchObject({ code: 'E_QUEUE_FULL' })
    await stream.end()
    expect(await server.readStream('a')).toMatchObject({ status: 'end', text: 'text', isCut: false })
  })

  // Symptom: both appends and the end resolved, and readers were told that something is missing.
  it.each([
    ['text', 'bytes', 'x', new Uint8Array([65])],
    ['bytes', 'text', new Uint8Array([65]), 'x'],
  ])('of %s refuses %s', async (_, __, first, second) => {
    const server = await start()
    const stream = await server.stream('a')
    const [taken, refused] = await Promise.allSettled([stream.append(first), stream.append(second)])
    expect([taken.status, refused]).toMatchObject(['fulfilled', { reason: { code: 'E_PAYLOAD_INVALID' } }])
    await stream.end()
    expect(await server.readStream('a')).toMatchObject({ status: 'end', isCut: false })
  })

  // The `slice` of a Buffer is a view.
  it('copies the bytes of a Buffer', async () => {
    const server = await start()
    const stream = await server.stream('a')
    const bytes = Buffer.from('abc')
    const appended = stream.append(bytes)
    bytes.fill('x')
    await appended
    await stream.end()
    expect((await server.readStream('a')).bytes).toEqual(new Uint8Array([97, 98, 99]))
  })

  it('is stopped by a request, and answers messages', async () => {
    const server = await start()
    const stream = await server.stream('a')
    stream.onMessage((data) => ({ heard: data }))
    expect(await server.request('a', { type: 'message', data: 1 })).toEqual({ heard: 1 })
    await expect(server.request('a', { type: 'stop', stream: 'another' })).rejects.toMatchObject({
      code: 'E_STREAM_ENDED',
    })
    expect(stream.signal.aborted).toBe(false)
    for (let index = 0; index < 2; index++) await server.request('a', { type: 'stop', reason: 'enough' })
    expect(stream.signal.aborted).toBe(true)
    await stream.append('the rest')
    await stream.end()
    expect(await server.readStream('a')).toMatchObject({ status: 'stop', text: 'the rest' })
    await expect(server.request('a', { type: 'stop' })).rejects.toMatchObject({ code: 'E_NO_RESPONDERS' })
  })

  // Symptom: 293 kB of such requests made 3.6 MB of logged stacks. Cause: a client's JSON became a text by its own `toString`.
  it.each([
    { type: 'stop', stream: { toString: 1 } },
    { type: 'stop', stream: ['x'] },
    { type: { toString: 1 } },
    { type: 'message' },
    [],
    'stop',
    7,
    null,
  ])('refuses the request %j, and logs nothing', async (request) => {
    const fake = await FakeServer.start({ history: ['#=1000'] })
    fakes.push(fake)
    const stream = await fake.server.stream('a')
    await expect(fake.server.request('a', request)).rejects.toMatchObject({
      code: expect.stringMatching(/^E_(STREAM_ENDED|UNSUPPORTED)$/),
    })
    expect(stream.signal.aborted).toBe(false)
    expect(fake.log.filter(({ level }) => level === 'error')).toEqual([])
  })

  it('cannot be stopped any more once its end is on its way', async () => {
    const server = await start()
    const stream = await server.stream('a')
    const ended = stream.end('result')
    const stopped = server.request('a', { type: 'stop' }).catch(({ code }) => code)
    await ended
    expect([null, 'E_NO_RESPONDERS']).toContain(await stopped)
    expect(stream.signal.aborted).toBe(false)
    expect(await server.readStream('a')).toMatchObject({ status: 'end', result: 'result' })
  })

  // Symptom: the example of the docs, which does not await its appends, ended its process once its stream was lost.
  it('that nobody awaits ends no process when its stream is lost: the signal tells it', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    try {
      const fake = await FakeServer.start({ history: ['#=1000'] })
      fakes.push(fake)
      const stream = await fake.server.stream('a')
      const place = `${stream.id}:1:lost`
      const lost = { key: 'a', payload: new Uint8Array(), isBinary: false, attributes: { stream: place } }
      await fake.broker.publish(lost)
      void stream.append('x')
      await vi.waitFor(() => expect(stream.signal.reason).toMatchObject({ code: 'E_STREAM_ENDED' }))
      void stream.append('y')
      void stream.end()
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(unhandled).not.toHaveBeenCalled()
      await expect(stream.append('z')).rejects.toMatchObject({ code: 'E_STREAM_ENDED' })
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  })

  it('refuses a second writer, and tells one that fails', async () => {
    const server = await start()
    {
      await using stream = await server.stream('a')
      await stream.append('so far')
      await expect(server.stream('a')).rejects.toMatchObject({ code: 'E_STREAM_BUSY' })
    }
    expect(await server.readStream('a')).toMatchObject({ status: 'fail', text: 'so far' })
    expect(await server.readStream('b')).toMatchObject({ id: undefined, text: '' })
    expect(server.stats().streams).toMatchObject({ activeCount: 0, keptBytes: 0, appendCount: 1 })
  })
})
