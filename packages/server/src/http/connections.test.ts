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

function request(connections: HttpConnections, socket: Duplex): { isAnswered: boolean; end: () => void } {
  const response = new EventEmitter()
  const isAnswered = connections.begin(socket, response as ServerResponse)
  return { isAnswered, end: () => void response.emit('close') }
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

  it('close one with a request in progress only when none is idle', () => {
    const connections = new HttpConnections(LIMITS)
    const sockets = open(connections, 4)
    for (const index of [2, 0, 1]) request(connections, sockets[index] as Duplex)
    const others = open(connections, 1, '198.51.100.1')
    expect(areOpen(sockets)).toEqual([true, true, true, false])
    request(connections, others[0] as Duplex)
    open(connections, 1, '198.51.100.2')
    expect(areOpen([...sockets, ...others])).toEqual([true, true, false, false, true])
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
    expect(areOpen(strangers.slice(-4))).toEqual([false, true, true, true])
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

  it('end those without a request, and all at a certain age', () => {
    vi.useFakeTimers()
    const connections = new HttpConnections({ ...LIMITS, maxIdleMs: 1_000, maxAgeMs: 5_000 })
    const [idle, busy] = open(connections, 2) as [Duplex, Duplex]
    const { end } = request(connections, busy)
    vi.advanceTimersByTime(1_500)
    expect(areOpen([idle, busy])).toEqual([false, true])
    end()
    vi.advanceTimersByTime(500)
    expect(busy.destroyed).toBe(false)
    request(connections, busy)
    vi.advanceTimersByTime(5_000)
    expect(busy.destroyed).toBe(true)
    expect(connections.stats()).toEqual({ connectionCount: 0, droppedCounts: { timeout: 2 } })
    expect(vi.getTimerCount()).toBe(0)
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
