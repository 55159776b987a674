import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { HttpConnections } from './connections.js'

const LIMITS = { maxConnections: 6, reservedForLoopback: 2, maxPerAddress: 3, maxPipelined: 2 }

function socketOf(remoteAddress: string): Duplex {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  return Object.assign(socket, { remoteAddress })
}

/** Connections of strangers with an address each, or of one address. */
function open(connections: HttpConnections, count: number, address?: string): Duplex[] {
  return Array.from({ length: count }, (_, index) => {
    const socket = socketOf(address ?? `203.0.113.${index + 1}`)
    connections.open(socket)
    return socket
  })
}

function request(connections: HttpConnections, socket: Duplex) {
  const response = Object.assign(new EventEmitter(), { shouldKeepAlive: true })
  const isAnswered = connections.begin(socket, response as ServerResponse)
  return { isAnswered, isLast: () => !response.shouldKeepAlive, end: () => void response.emit('close') }
}

const areOpen = (sockets: readonly Duplex[]) => sockets.map(({ destroyed }) => !destroyed)

afterEach(() => {
  vi.useRealTimers()
})

describe('HttpConnections', () => {
  it('close the one that has been idle for longest when a new one comes', () => {
    const connections = new HttpConnections(LIMITS)
    const sockets = open(connections, 4)
    // The oldest has had a request since.
    request(connections, sockets[0] as Duplex).end()
    const [last] = open(connections, 1, '198.51.100.1')
    expect(areOpen(sockets)).toEqual([true, false, true, true])
    expect(last?.destroyed).toBe(false)
    expect(connections.stats()).toEqual({ connectionCount: 4, droppedCounts: { evicted: 1 } })
  })

  it('wake nobody before the time of one of them ends', () => {
    // Symptom: a connection that Prometheus keeps open woke the server twice a second. Cause: a sweep every 500 ms.
    vi.useFakeTimers()
    const connections = new HttpConnections({ ...LIMITS, maxFirstMs: 5_000, maxIdleMs: 65_000 })
    const [socket] = open(connections, 1) as [Duplex]
    request(connections, socket).end()
    const beganMs = performance.now()
    vi.advanceTimersToNextTimer()
    expect(performance.now() - beganMs).toBe(5_000)
    vi.advanceTimersToNextTimer()
    expect(performance.now() - beganMs).toBe(65_000)
    expect(areOpen([socket])).toEqual([false])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leave those alone that are held, until all are closed', () => {
    vi.useFakeTimers()
    const connections = new HttpConnections(LIMITS)
    const [held, other] = open(connections, 2, '203.0.113.1') as [Duplex, Duplex]
    for (const socket of [held, other]) request(connections, socket)
    connections.hold(held)
    open(connections, 4)
    open(connections, 3, '203.0.113.1')
    vi.advanceTimersByTime(3_600_000)
    expect(areOpen([held, other])).toEqual([true, false])
    expect(connections.stats()).toMatchObject({ connectionCount: 1 })
    connections.close()
    expect(held.destroyed).toBe(true)
  })

  // Symptom: one client behind a proxy ended the requests of all others. Cause: when all were busy, the oldest made room for a new one.
  it('close none with a request in progress, but the new one', () => {
    const connections = new HttpConnections(LIMITS)
    const sockets = open(connections, 4)
    for (const index of [2, 0, 1]) request(connections, sockets[index] as Duplex)
    const others = open(connections, 1, '198.51.100.1')
    expect(areOpen(sockets)).toEqual([true, true, true, false])
    request(connections, others[0] as Duplex)
    const late = open(connections, 1, '198.51.100.2')
    expect(areOpen([...sockets, ...others, ...late])).toEqual([true, true, true, false, true, false])
    const one = new HttpConnections({ ...LIMITS, maxConnections: 100 })
    const busy = open(one, 3, '203.0.113.7')
    for (const socket of busy) request(one, socket)
    expect(areOpen([...busy, ...open(one, 1, '203.0.113.7')])).toEqual([true, true, true, false])
  })

  it('keep places that strangers do not get, and give them to this machine', () => {
    const connections = new HttpConnections(LIMITS)
    const local = [...open(connections, 1, '127.0.0.1'), ...open(connections, 1, '::1')]
    const strangers = open(connections, 20)
    expect(areOpen(local)).toEqual([true, true])
    expect(strangers.filter(({ destroyed }) => !destroyed)).toHaveLength(4)
    for (const stranger of strangers.slice(-4)) request(connections, stranger)
    // Beyond its own places, this machine takes those of strangers, and what is idle first.
    const more = open(connections, 1, '::ffff:127.0.0.1')
    expect(areOpen([...local, ...more])).toEqual([false, true, true])
    for (const socket of [...local.slice(1), ...more]) request(connections, socket)
    open(connections, 1, '127.0.0.1')
    expect(areOpen(strangers.slice(-4)), 'a probe of this machine gets through').toEqual([false, true, true, true])
    expect(connections.stats().connectionCount).toBe(6)
  })

  it('refuse a stranger rather than a request of this machine', () => {
    const connections = new HttpConnections(LIMITS)
    const local = open(connections, 6, '127.0.0.1')
    for (const socket of local) request(connections, socket)
    const [stranger] = open(connections, 1)
    expect(stranger?.destroyed).toBe(true)
    expect(areOpen(local)).toEqual(Array(6).fill(true))
    expect(connections.stats().droppedCounts).toEqual({ full: 1 })
  })

  it('give one address no more than its share, unless it is a proxy', () => {
    const connections = new HttpConnections({ ...LIMITS, maxConnections: 100 })
    const [other] = open(connections, 1, '198.51.100.1')
    const one = open(connections, 10, '2001:db8:1:2::1')
    open(connections, 1, '2001:db8:1:2:3::1')
    expect(one.filter(({ destroyed }) => !destroyed)).toHaveLength(2)
    expect(other?.destroyed).toBe(false)
    const behind = new HttpConnections({ ...LIMITS, maxConnections: 100 }, (peer) => peer === '203.0.113.1')
    expect(areOpen(open(behind, 10, '203.0.113.1')), 'a trusted proxy').toEqual(Array(10).fill(true))
    const proxied = open(connections, 10, '10.0.0.1')
    expect(areOpen(proxied)).toEqual(Array(10).fill(true))
  })

  it('forget an address with its last connection', async () => {
    const connections = new HttpConnections({ ...LIMITS, maxConnections: 100 })
    for (let round = 0; round < 3; round++) {
      const sockets = open(connections, 5, '203.0.113.7')
      for (const socket of sockets) socket.destroy()
      await new Promise(setImmediate)
      expect(connections.stats().connectionCount).toBe(0)
    }
    expect(areOpen(open(connections, 3, '203.0.113.7'))).toEqual([true, true, true])
  })

  // Symptom: a caller that keeps its connections was reset each minute, in the midst of a request. Cause: the age ended a connection
  // whatever it did, and without a word before.
  it('end those without a request, and old ones with an answer that says so', () => {
    vi.useFakeTimers()
    const limits = { ...LIMITS, maxFirstMs: 1_000, maxIdleMs: 2_000, maxAgeMs: 5_000, maxBusyMs: 20_000 }
    const connections = new HttpConnections(limits)
    const [silent, busy] = open(connections, 2) as [Duplex, Duplex]
    const first = request(connections, busy)
    vi.advanceTimersByTime(1_500)
    expect(areOpen([silent, busy])).toEqual([false, true])
    vi.advanceTimersByTime(10_000)
    expect(busy.destroyed, 'old, but busy').toBe(false)
    first.end()
    vi.advanceTimersByTime(1_500)
    const last = request(connections, busy)
    expect([first.isLast(), last.isLast(), busy.destroyed]).toEqual([false, true, false])
    last.end()
    vi.advanceTimersByTime(2_500)
    expect(busy.destroyed, 'idle').toBe(true)
    expect(connections.stats()).toEqual({ connectionCount: 0, droppedCounts: { timeout: 2 } })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('end one whose client does not read its answer', () => {
    vi.useFakeTimers()
    const connections = new HttpConnections({ ...LIMITS, maxBusyMs: 2_000 })
    const [socket] = open(connections, 1) as [Duplex]
    request(connections, socket)
    vi.advanceTimersByTime(2_500)
    expect(socket.destroyed).toBe(true)
  })

  // Symptom: one client behind a trusted proxy took all places with live reads. Cause: addresses of connections alone had a limit, and
  // those were the proxy's.
  it('let a client have its share of requests in progress, whichever connections they come by', () => {
    const connections = new HttpConnections({ ...LIMITS, maxConnections: 100 })
    const enter = (client: string) => {
      const response = new EventEmitter()
      const leave = connections.enter(client, response as ServerResponse)
      return { isIn: leave !== undefined, leave, end: () => void response.emit('close') }
    }
    const entered = Array.from({ length: 5 }, () => enter('203.0.113.9'))
    expect(entered.map(({ isIn }) => isIn)).toEqual([true, true, true, false, false])
    expect([enter('203.0.113.8').isIn, enter('10.0.0.1').isIn, enter('127.0.0.1').isIn]).toEqual([true, true, true])
    entered[0]?.leave?.()
    // Its end counts once.
    entered[0]?.end()
    expect([enter('203.0.113.9').isIn, enter('203.0.113.9').isIn]).toEqual([true, false])
    expect(Array.from({ length: 9 }, () => enter('10.0.0.1').isIn)).toEqual(Array(9).fill(true))
  })

  it('answer a few requests of a connection at a time', () => {
    const connections = new HttpConnections(LIMITS)
    const [socket] = open(connections, 1) as [Duplex]
    const { end } = request(connections, socket)
    request(connections, socket)
    end()
    expect(request(connections, socket).isAnswered).toBe(true)
    expect(request(connections, socket).isAnswered).toBe(false)
    expect(socket.destroyed).toBe(true)
    expect(connections.stats().droppedCounts).toEqual({ pipelining: 1 })
  })
})
