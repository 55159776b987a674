import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestWebSocket, type ServerEnd } from '../../dev/testing/test-websocket.js'
import { WebMQClient, type WebSocketConstructor } from '../../index.js'
import { history, presence, request, respond } from '../../parts/index.js'
import { withTopics } from '../../parts/schema/index.js'
import { readStream } from '../../parts/stream/index.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

const WELCOME = {
  protocol: 'webmq.v1',
  auth: 'none',
  session: 's',
  node: 'n',
  version: '0',
  heartbeatMs: 25_000,
  limits: { maxPayloadBytes: 1_000, dedupeWindowMs: 1_000 },
}

type Answer = (frame: string, server: ServerEnd) => void

/** A client of a server that says anything. */
function meet(answer: Answer = () => undefined, welcome: object = {}) {
  const received: string[] = []
  const errors: unknown[] = []
  const ends: ServerEnd[] = []
  const base = createTestWebSocket((end) => {
    ends.push(end)
    end.send(`welcome\n${JSON.stringify({ ...WELCOME, ...welcome })}`)
    return {
      onReceive: (data) => {
        const frame = new TextDecoder().decode(data)
        received.push(frame)
        // A client that asks without a pause must not hang its test.
        if (received.length < 1_000) answer(frame, end)
      },
      onClosed: () => undefined,
    }
  })
  const client = new WebMQClient({ url: 'ws://test.invalid/ws', WebSocket: strict(base), random: () => 0.5 })
  client.on('error', ({ error }) => errors.push(error))
  return { client, received, errors, ends, say: (frame: string) => ends.at(-1)?.send(frame) }
}

/** `close` takes the codes that browsers take. */
function strict(base: WebSocketConstructor): WebSocketConstructor {
  return class extends (base as unknown as new (url: string, protocols: string[]) => { close(code?: number): void }) {
    override close(code = 1000) {
      if (code !== 1000 && !(code >= 3000 && code <= 4999)) throw new RangeError(`close ${code}`)
      super.close(code)
    }
  } as unknown as WebSocketConstructor
}

const idOf = (frame: string) => frame.split(' ')[1]
const countOf = (frames: readonly string[], verb: string) => frames.filter((frame) => frame.startsWith(verb)).length
const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('a server that says anything', () => {
  // The client never came back from `bye 5000`. Browsers throw for such a code, before the next attempt was planned.
  it.each([5_000, 99_999_999, 1_005, 0])('does not keep the client from coming back by code %i', async (code) => {
    const { client, say, ends } = meet()
    await client.connect()
    say(`bye ${code}`)
    await settle()
    ends[0]?.close(code)
    await vi.advanceTimersByTimeAsync(300)
    expect(ends).toHaveLength(2)
    expect(client.state).toBe('connected')
  })

  // Each further `welcome` left a heartbeat behind, which pinged on every later connection.
  it('is greeted once', async () => {
    const { client, received, say } = meet()
    await client.connect()
    for (let count = 0; count < 50; count++) say(`welcome\n${JSON.stringify(WELCOME)}`)
    await vi.advanceTimersByTimeAsync(26_000)
    expect(countOf(received, 'ping')).toBe(1)
  })

  // A text in place of the time made the timer fire at once, and the publish was sent as fast as it was refused.
  it.each(['"x"', 'null', '{}', '-1', '0.0001'])(
    'is not sent a refused publish at once: retryAfterMs %s',
    async (time) => {
      const { client, received } = meet((frame, server) => {
        const body = `{"message":"m","retryable":true,"retryAfterMs":${time}}`
        if (frame.startsWith('publish')) server.send(`error ${idOf(frame)} E_RATE_LIMIT\n${body}`)
      })
      void client.publish('a', 1).catch(() => undefined)
      await vi.advanceTimersByTimeAsync(10_000)
      expect(countOf(received, 'publish')).toBeLessThan(10)
    },
  )

  // The wait doubled up to 20 s, although the server had said one second.
  // A stall of the broker for 6 s failed publishes with `E_TIMEOUT`, though their client waits for up to 60 s.
  it.each(['E_RATE_LIMIT', 'E_TIMEOUT'])(
    'is obeyed when it says when a publish may come again after %s, as often as it says so',
    async (code) => {
      const { client, received } = meet((frame, server) => {
        const body = '{"message":"m","retryable":true,"retryAfterMs":1000}'
        if (frame.startsWith('publish')) server.send(`error ${idOf(frame)} ${code}\n${body}`)
      })
      void client.publish('a', 1).catch(() => undefined)
      await vi.advanceTimersByTimeAsync(10_000)
      // 1,125 ms: a quarter more at most.
      expect(countOf(received, 'publish')).toBe(9)
    },
  )

  it('fails a publish without saying when it may come again', async () => {
    const { client, received } = meet((frame, server) => {
      if (frame.startsWith('publish')) server.send(`error ${idOf(frame)} E_TIMEOUT\n{"message":"m","retryable":true}`)
    })
    await expect(client.publish('a', 1)).rejects.toMatchObject({ code: 'E_TIMEOUT', retryable: true })
    expect(countOf(received, 'publish')).toBe(1)
  })

  // All that had waited came at once, and nearly all of it was refused again.
  it('gets a few of the refused publishes first, and more with each answer, in order', async () => {
    let isRefusing = true
    const waiting: (string | undefined)[] = []
    const { client, received, say } = meet((frame, server) => {
      const body = '{"message":"m","retryable":true,"retryAfterMs":1000}'
      if (!frame.startsWith('publish')) return
      if (isRefusing) server.send(`error ${idOf(frame)} E_RATE_LIMIT\n${body}`)
      else waiting.push(idOf(frame))
    })
    const published = Array.from({ length: 50 }, (_, index) => client.publish('a', index))
    await settle()
    expect(countOf(received, 'publish')).toBe(50)
    isRefusing = false
    received.length = 0
    await vi.advanceTimersByTimeAsync(1_200)
    published.push(client.publish('a', 50))
    for (const [sentCount, answeredCount] of [
      [8, 8],
      [16, 16],
      [27, 27],
    ] as const) {
      expect(waiting.length).toBe(sentCount)
      const answered = waiting.splice(0, answeredCount)
      for (const id of answered) say(`ok ${id}`)
      await settle()
    }
    expect(waiting).toEqual([])
    await Promise.all(published)
    const payloads = received.filter((frame) => frame.startsWith('publish')).map((frame) => frame.split('\n')[1])
    expect(payloads).toEqual(Array.from({ length: 51 }, (_, index) => `${index}`))
    // Nothing waits any more: the next ones are sent at once.
    received.length = 0
    for (let count = 0; count < 20; count++) void client.publish('a', count)
    await settle()
    expect(countOf(received, 'publish')).toBe(20)
  })

  // Each `ok` with `more` was followed by the next question at once, for ever.
  it('is not asked for empty pages as fast as it answers', async () => {
    let offset = 0
    const { client, received } = meet((frame, server) => {
      if (frame.startsWith('listen')) server.send(`ok ${idOf(frame)} position=e:${++offset}.AAAAA replayed=0 more`)
    })
    client.listen('a', () => undefined, { last: 10 })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(countOf(received, 'listen')).toBeLessThan(15)
  })

  // The messages of a read that nobody waited for any more were kept, as many as the server sent.
  it('does not fill the client by a read without an end', async () => {
    const { client, say } = meet((frame, server) => {
      if (frame.startsWith('history')) server.send(`ok ${idOf(frame)} replayed=999999999999999`)
    })
    const validate = vi.fn((value: unknown) => ({ value }))
    withTopics(client, { a: { '~standard': { version: 1, vendor: 'test', validate } } })
    const refused = expect(history('a', { client })).rejects.toMatchObject({ code: 'E_TIMEOUT' })
    await settle()
    say('message a e:1.AAAAA replay\n1')
    await vi.advanceTimersByTimeAsync(11_000)
    await refused
    say('message a e:2.AAAAA replay\n2')
    await settle()
    expect(validate.mock.calls).toEqual([[1]])
  })

  // A lease of 0 or of a text made a reader ask again without a pause.
  it.each([0, -1, 0.0001, 'x', null])('is not asked for a stream without a pause: lease %s', async (streamLeaseMs) => {
    const { client, received } = meet(
      (frame, server) => {
        if (frame.startsWith('listen')) server.send(`ok ${idOf(frame)} position=e:1.AAAAA`)
        if (frame.startsWith('read'))
          server.send(`ok ${idOf(frame)} position=e:1.AAAAA replayed=0\n{"stream":"S","sequence":0,"status":"active"}`)
      },
      { limits: { ...WELCOME.limits, streamLeaseMs } },
    )
    const reader = readStream('a', { client })
    await reader.ready
    await vi.advanceTimersByTimeAsync(20_000)
    expect(countOf(received, 'read')).toBeLessThan(15)
    reader.close()
  })

  // What a part of the client did not understand was thrown by the handler of the socket: with `ws` it ended the process.
  it('ends neither the client nor the process by messages that are none', async () => {
    const { client, errors, say } = meet((frame, server) => {
      if (frame.startsWith('presence')) server.send(`ok ${idOf(frame)}\n{"members":5}`)
      if (frame.startsWith('listen')) server.send(`ok ${idOf(frame)}`)
    })
    await client.connect()
    const members = presence('a', { client })
    members.on('sync', () => undefined)
    respond('a', () => 1, { client })
    await settle()
    const odd = ['task', 'task a', 'reply', 'ended g p\n[]', 'presence', 'presence a\nnull', 'presence a\n{"enter":5}']
    const more = [
      'ok',
      'ok l1\n{',
      'error',
      'error - E_X\n[]',
      'gap',
      'bye',
      'expiring x',
      'message a',
      'welcome\n1',
      '',
      '\n',
    ]
    for (const frame of [...odd, ...more]) say(frame)
    await settle()
    expect(client.state).toBe('connected')
    expect(errors.length).toBeGreaterThan(8)
    const published = client.publish('b', 1)
    published.catch(() => undefined)
    await client.close({ flushMs: 0 })
    expect(client.status.state).toBe('closed')
    await expect(client.publish('b', 1)).rejects.toMatchObject({ code: 'E_CLOSED' })
  })
})

describe('a peer that publishes anything', () => {
  const LEVELS = 100_000

  it('costs its message by nested JSON, and nothing else', async () => {
    const { client, errors, say } = meet((frame, server) => {
      if (frame.startsWith('listen')) server.send(`ok ${idOf(frame)}`)
      if (frame.startsWith('request')) server.send(`reply ${idOf(frame)}\n${deep(LEVELS)}`)
    })
    const got: unknown[] = []
    await client.listen('a', (payload) => got.push(payload)).ready
    const parse = JSON.parse
    // Engines that recurse throw a RangeError.
    const spy = vi.spyOn(JSON, 'parse').mockImplementation((text: string) => {
      if (text.startsWith('[[[[')) throw new RangeError('Maximum call stack size exceeded')
      return parse(text)
    })
    say(`message a e:1.AAAAA\n${deep(LEVELS)}`)
    say('message a e:2.AAAAA\n"next"')
    await settle()
    await expect(request('b', 1, { client })).rejects.toMatchObject({ code: 'E_RESPONSE' })
    spy.mockRestore()
    expect(got).toEqual(['next'])
    expect(errors).toEqual([expect.objectContaining({ code: 'E_PAYLOAD_INVALID' })])
    expect(client.state).toBe('connected')
  })

  // The watch of presence threw within the handler of the socket: two members' data were compared by their JSON, which
  // V8 cannot write at this depth.
  it('is present with nested data, which changes and goes', async () => {
    const member = `{"id":"m","data":${deep(LEVELS)}}`
    const { client, errors, say } = meet((frame, server) => {
      if (frame.startsWith('presence')) server.send(`ok ${idOf(frame)}\n{"members":[${member}]}`)
    })
    const seen: string[] = []
    const room = presence('a', { client })
    room.on('enter', ({ id }) => seen.push(`enter ${id}`))
    room.on('update', ({ id }) => seen.push(`update ${id}`))
    room.on('leave', ({ id }) => seen.push(`leave ${id}`))
    await client.connect()
    await settle()
    say(`presence a\n{"update":[${member}]}`)
    say('presence a\n{"leave":["m"]}')
    await settle()
    expect(seen).toEqual(['enter m', 'update m', 'leave m'])
    expect(errors).toEqual([])
  })

  // The reader hung: the code of a failure was converted to text, and what cannot be converted throws.
  it('fails its stream with an odd code', async () => {
    const { client, say } = meet((frame, server) => {
      if (frame.startsWith('listen')) server.send(`ok ${idOf(frame)} position=e:1.AAAAA`)
      if (frame.startsWith('read'))
        server.send(`ok ${idOf(frame)} position=e:1.AAAAA replayed=0\n{"stream":"S","sequence":0,"status":"active"}`)
    })
    const reader = readStream('a', { client })
    await reader.ready
    const text = expect(reader.text()).rejects.toMatchObject({ code: 'E_RESPONSE' })
    say('message a e:2.AAAAA stream=S:1:fail\n{"code":{"toString":1,"valueOf":1}}')
    await settle()
    await text
    expect(reader.status).toBe('fail')
  })
})
