import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { countedAddress, isLoopbackAddress } from '../identity/client-address.js'
import type { HttpDropReason, HttpStats } from './stats.js'

/** Limits for plain HTTP connections, which serve only probes, metrics and the demo page. */
export interface HttpLimits {
  readonly maxConnections: number
  /** Of these, places that only connections from this machine get. */
  readonly reservedForLoopback: number
  /** For addresses that are neither loopback nor private: behind those is a proxy. */
  readonly maxPerAddress: number
  /** Time without a complete request, at the start and between requests. */
  readonly maxIdleMs: number
  readonly maxAgeMs: number
  /** Requests of one connection that are answered at the same time. Browsers and probes send one. */
  readonly maxPipelined: number
}

const LIMITS: HttpLimits = {
  maxConnections: 1_024,
  reservedForLoopback: 64,
  maxPerAddress: 64,
  maxIdleMs: 5_000,
  maxAgeMs: 60_000,
  maxPipelined: 8,
}

const SWEEP_MS = 500

interface Tracked {
  readonly socket: Duplex
  /** It comes from this machine. */
  readonly isLocal: boolean
  /** See {@link countedAddress}. */
  readonly address: string | undefined
  openedMs: number
  idleSinceMs: number
  pendingCount: number
  /** Until it fires, nothing is read. */
  rest: NodeJS.Timeout | undefined
}

/**
 * The plain HTTP connections of a server. A new one always gets a place: when there is none, the one that has been idle
 * for longest is closed, and one with a request in progress only when none is idle. Strangers never take the last places,
 * so probes of this machine get through.
 *
 * A Node server that does not listen neither tracks connections nor times out slow ones.
 */
export class HttpConnections {
  readonly #limits: HttpLimits
  /** In the order in which they became idle or busy. */
  readonly #tracked = new Map<Duplex, Tracked>()
  /** Those that bodies keep open, which other limits bound. */
  readonly #held = new Set<Duplex>()
  readonly #droppedCounts: { [Reason in HttpDropReason]?: number } = {}
  #sweeper: NodeJS.Timeout | undefined

  constructor(limits: Partial<HttpLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits }
  }

  stats(): HttpStats {
    return { connectionCount: this.#tracked.size + this.#held.size, droppedCounts: { ...this.#droppedCounts } }
  }

  /** Takes a connection in, or destroys it. Cost: O(connections), of which there are few. */
  open(socket: Duplex): void {
    const remoteAddress = 'remoteAddress' in socket ? String(socket.remoteAddress ?? '') : ''
    const isLocal = isLoopbackAddress(remoteAddress)
    const address = countedAddress(remoteAddress)
    const neighbours = this.#those((other) => address !== undefined && other.address === address)
    if (neighbours.length >= this.#limits.maxPerAddress) this.#evict(neighbours)
    if (!this.#makeRoom(isLocal)) {
      this.#count('full')
      socket.destroy()
      return
    }
    const nowMs = performance.now()
    const times = { openedMs: nowMs, idleSinceMs: nowMs }
    const tracked: Tracked = { socket, isLocal, address, ...times, pendingCount: 0, rest: undefined }
    this.#tracked.set(socket, tracked)
    socket.once('close', () => this.#forget(tracked))
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Requests of a connection that are not answered yet; `undefined`: it came to a server that the embedder owns. */
  pendingCountOf(socket: Duplex): number | undefined {
    return this.#tracked.get(socket)?.pendingCount
  }

  /** The next answer takes its time: the age of the connection counts from now. It should be the last one. */
  prolong(socket: Duplex): void {
    const tracked = this.#tracked.get(socket)
    if (tracked !== undefined) tracked.openedMs = performance.now()
  }

  /** The connection is somebody else's from now on. */
  release(socket: Duplex): void {
    const tracked = this.#tracked.get(socket)
    if (tracked !== undefined) this.#forget(tracked)
  }

  /** No limit of time or number holds for the connection any more. */
  hold(socket: Duplex): void {
    if (!this.#tracked.has(socket)) return
    this.release(socket)
    this.#held.add(socket)
    socket.once('close', () => this.#held.delete(socket))
  }

  /** A request begins. Returns whether to answer it; otherwise its connection is destroyed. */
  begin(socket: Duplex, response: ServerResponse): boolean {
    const tracked = this.#tracked.get(socket)
    // A connection of a server that the embedder owns.
    if (tracked === undefined) return !socket.destroyed
    if (tracked.pendingCount >= this.#limits.maxPipelined) {
      this.#drop(tracked, 'pipelining')
      return false
    }
    if (++tracked.pendingCount === 1) this.#moveLast(tracked)
    response.once('close', () => {
      if (--tracked.pendingCount > 0) return
      tracked.idleSinceMs = performance.now()
      this.#moveLast(tracked)
    })
    return true
  }

  /** A request was refused, because its client asks too often. */
  countRefused(): void {
    this.#count('rate')
  }

  /** Reads nothing from a connection for a while, once this answer is written. */
  rest(socket: Duplex, response: ServerResponse, restMs: number): void {
    const tracked = this.#tracked.get(socket)
    if (tracked === undefined) return
    const begin = () => {
      if (socket.destroyed) return
      socket.pause()
      clearTimeout(tracked.rest)
      tracked.rest = setTimeout(() => socket.resume(), restMs).unref()
    }
    // Before this, Node reads on by itself.
    if (response.closed) begin()
    else response.once('close', begin)
  }

  close(): void {
    for (const socket of [...this.#tracked.keys(), ...this.#held]) socket.destroy()
  }

  #makeRoom(isLocal: boolean): boolean {
    const { maxConnections, reservedForLoopback } = this.#limits
    const strangers = this.#those((tracked) => !tracked.isLocal)
    if (!isLocal && strangers.length >= maxConnections - reservedForLoopback) return this.#evict(strangers)
    if (this.#tracked.size < maxConnections) return true
    const all = [...this.#tracked.values()]
    return (
      this.#drop(strangers.find(isIdle), 'evicted') ||
      this.#drop(all.find(isIdle), 'evicted') ||
      this.#evict(isLocal ? [...strangers, ...all] : strangers)
    )
  }

  #those(isIt: (tracked: Tracked) => boolean): readonly Tracked[] {
    return [...this.#tracked.values()].filter(isIt)
  }

  /** Closes the first that is idle, or the first. Returns whether there was one. */
  #evict(some: readonly Tracked[]): boolean {
    return this.#drop(some.find(isIdle) ?? some[0], 'evicted')
  }

  #moveLast(tracked: Tracked): void {
    if (this.#tracked.delete(tracked.socket)) this.#tracked.set(tracked.socket, tracked)
  }

  #sweep(): void {
    const nowMs = performance.now()
    const { maxAgeMs, maxIdleMs } = this.#limits
    for (const tracked of this.#tracked.values()) {
      const isSilent = isIdle(tracked) && nowMs - tracked.idleSinceMs >= maxIdleMs
      if (isSilent || nowMs - tracked.openedMs >= maxAgeMs) this.#drop(tracked, 'timeout')
    }
  }

  /** Returns whether there was one. */
  #drop(tracked: Tracked | undefined, reason: HttpDropReason): boolean {
    if (tracked === undefined) return false
    this.#count(reason)
    this.#forget(tracked)
    tracked.socket.destroy()
    return true
  }

  #forget(tracked: Tracked): void {
    if (!this.#tracked.delete(tracked.socket)) return
    clearTimeout(tracked.rest)
    if (this.#tracked.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }

  #count(reason: HttpDropReason): void {
    this.#droppedCounts[reason] = (this.#droppedCounts[reason] ?? 0) + 1
  }
}

function isIdle({ pendingCount }: Tracked): boolean {
  return pendingCount === 0
}
