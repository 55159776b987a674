import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WebMQClient } from '../../core/client.js'
import type { ClientOptions } from '../../core/client-options.js'
import type { Message } from '../../core/types.js'
import { createTestServer, type TestServer, type TestServerOptions } from '../../dev/testing/index.js'
import { createTestWebSocket } from '../../dev/testing/test-websocket.js'
import { history } from '../history/index.js'
import { presence } from '../presence/index.js'
import { Hub } from './hub.js'
import { portPair } from './port.js'
import { TabSocket } from './tab-socket.js'

/** Locks of tabs that live for ever. */
const locks = { request: () => new Promise(() => undefined) } as unknown as Pick<LockManager, 'request'>

function setUp(options: TestServerOptions = {}, maxTabBytes = 1_048_576) {
  const server = createTestServer(options)
  const hub = new Hub({ socketClass: server.WebSocket, locks, maxTabBytes })
  const sockets: TabSocket[] = []
  class SharedSocket extends TabSocket {
    constructor(url: string) {
      super(url, { pingMs: 60_000, lock: 'a tab', onEnd: () => undefined })
      sockets.push(this)
      const [mine, its] = portPair()
      this.attach(mine)
      hub.accept(its)
    }
  }
  const tab = (more: Partial<ClientOptions> = {}) => {
    const client = new WebMQClient({ url: server.url, WebSocket: SharedSocket, random: () => 0, ...more })
    onTestFinished(() => client.close({ flushMs: 0 }))
    return client
  }
  return { server, hub, tab, sockets }
}

/** Tabs that speak by hand, and a server that says what the test says. */
function scripted() {
  const asked: string[] = []
  let server: { send(data: string): void } | undefined
  const socketClass = createTestWebSocket((socket) => {
    server = socket
    socket.send('welcome\n{}')
    return { onReceive: (data) => asked.push(new TextDecoder().decode(data)), onClosed: () => undefined }
  })
  const hub = new Hub({ socketClass, locks, maxTabBytes: 1_048_576 })
  const open = async () => {
    const [mine, its] = portPair()
    const heard: string[] = []
    mine.onmessage = (message) => message[0] === 'frame' && heard.push(`${message[1]}`)
    hub.accept(its)
    mine.post(['hello', 'ws://test.invalid/ws', undefined, ''])
    await vi.waitFor(() => expect(heard).toHaveLength(1))
    return { heard, say: (frame: string) => mine.post(['frame', frame]), leave: () => mine.post(['close', 1000, '']) }
  }
  onTestFinished(() => hub.close())
  return { asked, open, say: (frame: string) => server?.send(frame) }
}

async function listening(client: WebMQClient, pattern: string, options = {}) {
  const messages: Message<unknown>[] = []
  const subscription = client.listen(pattern, (_, message) => messages.push(message), options)
  await subscription.ready
  return { messages, payloads: () => messages.map(({ payload }) => payload), subscription }
}

const requests = (server: TestServer, verb: string) => server.received.filter((message) => message.verb === verb)

/** A JWT whose signature nobody looks at. */
const jwt = (claims: object) => `e30.${btoa(JSON.stringify(claims)).replaceAll('=', '')}.x`

// The handler of the hub's socket threw at a body that is no JSON, or `null`: the tabs heard nothing of the error, and a
// process of Node ended.
it.each(['{', 'null', '[]', '5', ''])('an error that names nothing is for all tabs: %s', async (body) => {
  const { open, say } = scripted()
  const [one, two] = [await open(), await open()]
  const frame = `error - E_RATE_LIMIT\n${body}`
  say(frame)
  say('gap # limit')
  await vi.waitFor(() => expect(one.heard).toContain(frame))
  expect(two.heard).toContain(frame)
})

describe('tabs with one hub', () => {
  it('share a connection, and each gets every message once', async () => {
    const { server, tab } = setUp()
    const [one, two] = [tab(), tab()]
    const [a, b] = await Promise.all([listening(one, 'a.*'), listening(two, 'a.*')])
    const c = await listening(two, '#')
    expect(server.connectionCount).toBe(1)
    for (let n = 0; n < 100; n++) await one.publish('a.b', n)
    const all = Array.from({ length: 100 }, (_, n) => n)
    await vi.waitFor(() => expect([a.payloads(), b.payloads(), c.payloads()]).toEqual([all, all, all]))
  })

  it('get their own replays', async () => {
    const { server, tab } = setUp({ replayPageMessages: 2 })
    const a = await listening(tab(), 'a')
    for (let n = 0; n < 5; n++) server.publish('a', n)
    await vi.waitFor(() => expect(a.messages).toHaveLength(5))
    const b = await listening(tab(), 'a', { since: a.messages[1]?.position })
    expect(b.payloads()).toEqual([2, 3, 4])
    server.publish('a', 5)
    await vi.waitFor(() => expect(b.payloads()).toEqual([2, 3, 4, 5]))
    expect(a.payloads()).toEqual([0, 1, 2, 3, 4, 5])
    const { messages } = await history('a', { client: tab(), limit: 2 })
    expect(messages.map(({ payload }) => payload)).toEqual([4, 5])
    expect(server.connectionCount).toBe(1)
  })

  it('resume by their own positions when the connection is lost', async () => {
    const { server, tab } = setUp()
    const [one, two] = [tab(), tab()]
    const a = await listening(one, 'a')
    server.publish('a', 0)
    const b = await listening(two, 'a')
    server.loseAnswer('publish')
    const published = one.publish('a', 1)
    await vi.waitFor(() => expect(b.messages).toHaveLength(1))
    server.drop()
    server.publish('a', 2)
    expect(await published).toMatchObject({ duplicate: true })
    await vi.waitFor(() =>
      expect([a.payloads(), b.payloads()]).toEqual([
        [0, 1, 2],
        [1, 2],
      ]),
    )
    expect(server.connectionCount).toBe(1)
  })

  it('move to another connection when the hub ends', async () => {
    const { server, hub, tab } = setUp()
    const one = tab()
    await one.connect()
    const lost = vi.fn()
    one.on(
      'status',
      ({ state }, previous) => previous.state === 'connected' && state !== previous.state && lost(one.status),
    )
    hub.close()
    await vi.waitFor(() => expect(lost).toHaveBeenCalledWith(expect.objectContaining({ code: 1006 })))
    expect(server.connectionCount).toBe(0)
  })

  it('keep a listen until the last one ends it', async () => {
    const { server, tab } = setUp()
    const [one, two] = [tab(), tab()]
    const a = await listening(one, 'a')
    const b = await listening(two, 'a')
    await a.subscription.close()
    expect(requests(server, 'unlisten')).toEqual([])
    server.publish('a', 1)
    await vi.waitFor(() => expect(b.payloads()).toEqual([1]))
    expect(a.messages).toEqual([])
    await two.close()
    await vi.waitFor(() => expect(server.patterns).toEqual([]))
    await one.close()
    await vi.waitFor(() => expect(server.connectionCount).toBe(0))
  })

  it('are told of gaps and ended listens of their own patterns alone', async () => {
    const { server, tab } = setUp()
    const [one, two] = [tab(), tab()]
    const a = await listening(one, 'a')
    await listening(two, 'b')
    const gaps = [vi.fn(), vi.fn()]
    const errors = [vi.fn(), vi.fn()]
    for (const [index, client] of [one, two].entries()) {
      client.on('gap', gaps[index] ?? vi.fn())
      client.on('error', errors[index] ?? vi.fn())
    }
    server.gap('a')
    server.revoke('a')
    await vi.waitFor(() => expect(errors[0]).toHaveBeenCalledOnce())
    expect(a.subscription.state).toBe('closed')
    expect(gaps[0]).toHaveBeenCalledOnce()
    expect(gaps[1]).not.toHaveBeenCalled()
    expect(errors[1]).not.toHaveBeenCalled()
  })

  it('do without the messages that they publish with `echo: false`, and others get them', async () => {
    const { server, tab } = setUp()
    const [one, two] = [tab(), tab()]
    const a = await listening(one, 'a')
    const b = await listening(two, 'a')
    for (let n = 0; n < 3; n++) await one.publish('a', n, { echo: false })
    await two.publish('a', 3)
    await vi.waitFor(() => expect([a.payloads(), b.payloads()]).toEqual([[3], [0, 1, 2, 3]]))
    // A refused one does not come: nothing of its content may be kept back.
    server.refuse('publish', 'E_FORBIDDEN')
    await expect(one.publish('a', 4, { echo: false })).rejects.toThrow('not granted')
    await two.publish('a', 4)
    await vi.waitFor(() => expect(a.payloads()).toEqual([3, 4]))
  })

  it('share a connection only if their tokens have the same claims', async () => {
    const { server, tab } = setUp({ verifyToken: () => ({ userId: 'ada' }) })
    const tokens = [
      { sub: 'ada', exp: 1 },
      { exp: 2, sub: 'ada' },
      { sub: 'ada', can: 'a' },
    ].map(jwt)
    for (const token of [...tokens, 'opaque', 'opaque']) await tab({ token }).connect()
    expect(server.connectionCount).toBe(3)
    const anonymous = tab()
    anonymous.on('error', () => undefined)
    await expect(anonymous.connect()).rejects.toThrow('authenticate first')
  })

  it('close alike when their token is refused', async () => {
    const { tab } = setUp({ verifyToken: () => undefined })
    const [one, two] = [tab({ token: 'bad' }), tab({ token: 'bad' })]
    const report = vi.fn()
    for (const client of [one, two]) client.on('error', report)
    const outcomes = await Promise.allSettled([one.connect(), two.connect()])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(report).toHaveBeenCalledTimes(2)
  })

  it('renew the token once for all', async () => {
    let issued = 0
    const token = vi.fn(() => jwt({ sub: 'ada', exp: ++issued }))
    const { server, tab } = setUp({ verifyToken: () => ({ userId: 'ada' }) })
    await tab({ token }).connect()
    await tab({ token }).connect()
    expect(token).toHaveBeenCalledTimes(2)
    server.expireTokens(60_000)
    await vi.waitFor(() => expect(requests(server, 'auth')).toHaveLength(2))
    expect(token).toHaveBeenCalledTimes(3)
    expect(server.connectionCount).toBe(1)
  })

  it('get a connection of their own when a new token has other claims', async () => {
    let rights = 'read'
    const { server, tab } = setUp({ verifyToken: () => ({ userId: 'ada' }) })
    const one = tab({ token: () => jwt({ sub: 'ada', rights }) })
    const two = tab({ token: jwt({ sub: 'ada', rights }) })
    await Promise.all([one.connect(), two.connect()])
    expect(server.connectionCount).toBe(1)
    rights = 'write'
    await one.refreshToken()
    expect(server.connectionCount).toBe(2)
  })

  it('are one member where they are present', async () => {
    const { server, tab } = setUp()
    const [one, two] = [tab(), tab()]
    const [a, b] = [presence('room', { client: one }), presence('room', { client: two })]
    await Promise.all([a.enter({ at: 1 }), b.enter({ at: 2 })])
    expect(await a.get()).toHaveLength(1)
    await a.leave()
    expect(await b.get()).toMatchObject([{ data: { at: 2 } }])
    const entered = vi.fn()
    b.on('enter', entered)
    await vi.waitFor(() => expect(entered).toHaveBeenCalled())
    await b.leave()
    expect(server.presence.members?.('room') ?? []).toEqual([])
  })

  it('are one member of a queue group, and take turns', async () => {
    const { asked, say, open } = scripted()
    const [one, two] = [await open(), await open()]
    for (const tab of [one, two]) tab.say('listen 1 jobs.* group=g')
    await vi.waitFor(() => expect(asked).toEqual(['listen t1 jobs.* group=g', 'listen t2 jobs.* group=g']))
    say('ok t1')
    say('ok t2')
    for (const n of [1, 2, 3]) say(`task g jobs.* jobs.x\n${n}`)
    const tasks = ({ heard }: { heard: string[] }) => heard.filter((text) => text.startsWith('task'))
    await vi.waitFor(() => expect([tasks(one), tasks(two)].map(({ length }) => length)).toEqual([2, 1]))
    one.say('unlisten 2 jobs.* group=g')
    await vi.waitFor(() => expect(one.heard.at(-1)).toBe('ok 2'))
    say('task g jobs.* jobs.x\n4')
    await vi.waitFor(() => expect(tasks(two)).toHaveLength(2))
    two.leave()
    await vi.waitFor(() => expect(asked.at(-1)).toBe('unlisten t3 jobs.* group=g'))
  })

  it('are revoked only where their listens were live', async () => {
    const { asked, say, open } = scripted()
    const [one, two] = [await open(), await open()]
    one.say('listen 1 a')
    await vi.waitFor(() => expect(asked).toEqual(['listen t1 a']))
    say('ok t1')
    two.say('listen 1 a')
    await vi.waitFor(() => expect(asked).toHaveLength(2))
    say('error - E_FORBIDDEN\n{"pattern":"a"}')
    say('ok t2')
    say('message a -\n1')
    await vi.waitFor(() => expect(two.heard.slice(1)).toEqual(['ok 1', 'message a -\n1']))
    expect(one.heard.slice(1)).toEqual(['ok 1', 'error - E_FORBIDDEN\n{"pattern":"a"}'])
  })

  it('stay present when another `enter` is refused, and leave when they go', async () => {
    const { asked, say, open } = scripted()
    const [one] = [await open(), await open()]
    one.say('presence 1 room op=enter member=m')
    await vi.waitFor(() => expect(asked).toEqual(['presence t1 room op=enter member=m']))
    say('ok t1')
    one.say('presence 2 room op=enter member=m\n1')
    await vi.waitFor(() => expect(asked).toHaveLength(2))
    say('error t2 E_RATE_LIMIT\n{}')
    await vi.waitFor(() => expect(one.heard.at(-1)).toMatch(/^error 2/))
    one.leave()
    await vi.waitFor(() => expect(asked.at(-1)).toBe('presence t3 room op=leave'))
  })

  it('get the replies to their own requests, and errors about their own replies', async () => {
    const { asked, say, open } = scripted()
    const [one, two] = [await open(), await open()]
    two.say('listen 1 sum.* group=r respond')
    await vi.waitFor(() => expect(asked).toHaveLength(1))
    say('ok t1')
    one.say('request 7 sum.x within=100\n[1]')
    await vi.waitFor(() => expect(asked[1]).toBe('request t2 sum.x within=100\n[1]'))
    say('task r sum.* sum.x request=q1 within=100\n[1]')
    say('ok t2')
    await vi.waitFor(() => expect(two.heard.at(-1)).toMatch(/^task r/))
    two.say('reply q1\n1')
    await vi.waitFor(() => expect(asked[2]).toBe('reply q1\n1'))
    say('reply t2\n1')
    say('error q1 E_TIMEOUT\n{}')
    await vi.waitFor(() => expect(one.heard.slice(1)).toEqual(['ok 7', 'reply 7\n1']))
    expect(two.heard.at(-1)).toBe('error q1 E_TIMEOUT\n{}')
    say('ended r sum.* respond\n{"code":"E_FORBIDDEN"}')
    await vi.waitFor(() => expect(two.heard.at(-1)).toMatch(/^ended r/))
    expect(one.heard).toHaveLength(3)
  })

  it('miss no message that only another tab allows to miss', async () => {
    const { server, tab } = setUp()
    await listening(tab(), 'a', { overflow: 'latest' })
    await listening(tab(), 'a')
    await listening(tab(), 'a', { overflow: 'latest' })
    expect(requests(server, 'listen')).toMatchObject([
      { overflow: 'latest' },
      { overflow: 'disconnect' },
      { overflow: 'disconnect' },
    ])
  })

  it('reconnect when one of them finds the connection dead', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const { server, tab } = setUp({ heartbeatMs: 1_000 })
    const [one, two] = [tab(), tab({ heartbeatTimeoutMs: 60_000 })]
    await Promise.all([one.connect(), two.connect()])
    server.isSilent = true
    await vi.advanceTimersByTimeAsync(11_500)
    expect([one.state, two.state]).not.toContain('connected')
    server.isSilent = false
    await vi.advanceTimersByTimeAsync(30_000)
    expect([one.state, two.state]).toEqual(['connected', 'connected'])
  })

  it('are disconnected when they read too slowly, and miss nothing', async () => {
    const { server, tab } = setUp({}, 4_096)
    const quick = await listening(tab(), 'a')
    const slow = tab()
    const closed = vi.fn()
    slow.on(
      'status',
      (status, previous) => previous.state === 'connected' && status.state !== previous.state && closed(status),
    )
    const b = await listening(slow, 'a')
    // All in one turn: neither tab can say that it has read some.
    for (let n = 0; n < 100; n++) server.publish('a', 'x'.repeat(100) + n)
    await vi.waitFor(() => expect(b.messages).toHaveLength(100))
    await vi.waitFor(() => expect(quick.messages).toHaveLength(100))
    expect(new Set(b.messages.map(({ position }) => position)).size).toBe(100)
  })

  it('exchange bytes', async () => {
    const { tab } = setUp()
    const [one, two] = [tab(), tab()]
    const a = await listening(one, 'a')
    await two.publish('a', new Uint8Array([10, 0, 10]))
    await vi.waitFor(() => expect(a.payloads()).toEqual([new Uint8Array([10, 0, 10])]))
  })
})
