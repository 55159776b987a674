import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { countedAddress, isLoopbackAddress } from '../../kernel/identity/client-address.js'

/**
 * Why a plain HTTP connection was ended: room for others, no request for too long, too many at once, no room. `rate`: a request was
 * refused, because its client asks too often.
 */
export type HttpDropReason = 'evicted' | 'timeout' | 'pipelining' | 'full' | 'rate'

/** Plain HTTP connections: open ones, and those that were ended or refused since the start, with refused requests. */
export interface HttpStats {
  readonly connectionCount: number
  readonly droppedCounts: Readonly<Partial<Record<HttpDropReason, number>>>
}

/** Limits for plain HTTP connections, which serve only probes, metrics and the demo page. */
export interface HttpLimits {
  readonly maxConnections: number
  /** Of these, places that only connections from this machine get. */
  readonly reservedForLoopback: number
  /**
   * Connections of an address that is neither loopback nor private: behind those is a proxy. Also the requests in progress of such a
   * client, whichever connections of a proxy they come by.
   */
  readonly maxPerAddress: number
  /** Time from the start to the first complete request. */
  readonly maxFirstMs: number
  /** Time between requests. Longer than a proxy keeps an idle connection, or a request meets the close of its connection. */
  readonly maxIdleMs: number
  /** An older connection ends with its next answer, which says so. */
  readonly maxAgeMs: number
  /** Time for an answer. Then its client does not read. */
  readonly maxBusyMs: number
  /** Requests of one connection that are answered at the same time. Browsers and probes send one. */
  readonly maxPipelined: number
}

const LIMITS: HttpLimits = {
  maxConnections: 1_024,
  reservedForLoopback: 64,
  maxPerAddress: 64,
  maxFirstMs: 5_000,
  maxIdleMs: 65_000,
  maxAgeMs: 60_000,
  maxBusyMs: 120_000,
  maxPipelined: 8,
}

/** Connections whose time ends within this time are closed together, so that none is late by more. */
const SWEEP_MS = 500

interface Tracked {
  readonly socket: Duplex
  /** It comes from this machine. */
  readonly isLocal: boolean
  /** See {@link countedAddress}. */
  readonly address: string | undefined
  readonly openedMs: number
  /** Since when it has been idle or busy. */
  sinceMs: number
  hasAsked: boolean
  pendingCount: number
  /** Until it fires, nothing is read. */
  rest: NodeJS.Timeout | undefined
  readonly onClose: () => void
}

/**
 * The plain HTTP connections of a server. When there is no place for a new one, the one that has been idle for longest is closed;
 * when all are busy, the new one. Strangers never take the last places, and give theirs up for this machine, so its probes get
 * through.
 *
 * A Node server that does not listen neither tracks connections nor times out slow ones.
 */
export class HttpConnections {
  readonly #limits: HttpLimits
  readonly #isProxy: (remoteAddress: string) => boolean
  /** In the order in which they became idle or busy. */
  readonly #tracked = new Map<Duplex, Tracked>()
  /** Those that bodies keep open, which other limits bound. */
  readonly #held = new Set<Duplex>()
  /** Requests in progress, by client. */
  readonly #requestCounts = new Map<string, number>()
  readonly #droppedCounts: { [Reason in HttpDropReason]?: number } = {}
  #sweeper: NodeJS.Timeout | undefined
  /** When the sweeper looks for connections whose time has ended. */
  #sweepMs = Number.POSITIVE_INFINITY

  /** @param isProxy Whether connections of an address carry requests of many clients, so that it has no share. */
  constructor(limits: Partial<HttpLimits> = {}, isProxy: (remoteAddress: string) => boolean = () => false) {
    this.#limits = { ...LIMITS, ...limits }
    this.#isProxy = isProxy
  }

  stats(): HttpStats {
    return { connectionCount: this.#tracked.size + this.#held.size, droppedCounts: { ...this.#droppedCounts } }
  }

  /** Takes a connection in, or destroys it. Cost: O(connections), of which there are few. */
  open(socket: Duplex): void {
    const remoteAddress = 'remoteAddress' in socket ? String(socket.remoteAddress ?? '') : ''
    const isLocal = isLoopbackAddress(remoteAddress)
    const address = this.#isProxy(remoteAddress) ? undefined : countedAddress(remoteAddress)
    if (!this.#hasShare(address) || !this.#makeRoom(isLocal)) {
      this.#count('full')
      socket.destroy()
      return
    }
    const nowMs = performance.now()
    const state = { openedMs: nowMs, sinceMs: nowMs, hasAsked: false, pendingCount: 0, rest: undefined }
    const tracked: Tracked = { socket, isLocal, address, ...state, onClose: () => this.release(socket) }
    this.#tracked.set(socket, tracked)
    socket.once('close', tracked.onClose)
    this.#sweepBy(tracked)
  }

  /** Requests of a connection that are not answered yet; `undefined`: it came to a server that the embedder owns. */
  pendingCountOf(socket: Duplex): number | undefined {
    return this.#tracked.get(socket)?.pendingCount
  }

  /** The connection is somebody else's from now on. */
  release(socket: Duplex): void {
    const tracked = this.#tracked.get(socket)
    if (tracked !== undefined) this.#forget(tracked)
  }

  /** The connection leaves HTTP with this request; it is destroyed while an earlier one is not answered yet. */
  upgrade(socket: Duplex): void {
    const tracked = this.#tracked.get(socket)
    if (tracked === undefined) return
    if (isIdle(tracked)) this.#forget(tracked)
    else this.#drop(tracked, 'pipelining')
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
    if (performance.now() - tracked.openedMs >= this.#limits.maxAgeMs) response.shouldKeepAlive = false
    tracked.hasAsked = true
    if (++tracked.pendingCount === 1) this.#moveLast(tracked)
    response.once('close', () => {
      if (--tracked.pendingCount === 0) this.#moveLast(tracked)
    })
    return true
  }

  /**
   * Counts a request for its client while it is in progress. Returns what ends that before its answer does; `undefined`: the client
   * has too many.
   */
  enter(clientAddress: string, response: ServerResponse): (() => void) | undefined {
    const client = countedAddress(clientAddress)
    if (client === undefined) return () => undefined
    const count = this.#requestCounts.get(client) ?? 0
    if (count >= this.#limits.maxPerAddress) return undefined
    this.#requestCounts.set(client, count + 1)
    let isIn = true
    const leave = () => {
      if (!isIn) return
      isIn = false
      const left = (this.#requestCounts.get(client) ?? 0) - 1
      if (left > 0) this.#requestCounts.set(client, left)
      else this.#requestCounts.delete(client)
    }
    response.once('close', leave)
    return leave
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

  /** Whether an address may have one more connection, after one that is idle was closed if need be. */
  #hasShare(address: string | undefined): boolean {
    if (address === undefined) return true
    const others = this.#those((tracked) => tracked.address === address)
    return others.length < this.#limits.maxPerAddress || this.#evict(others.find(isIdle))
  }

  #makeRoom(isLocal: boolean): boolean {
    const { maxConnections, reservedForLoopback } = this.#limits
    const strangers = this.#those((tracked) => !tracked.isLocal)
    if (!isLocal && strangers.length >= maxConnections - reservedForLoopback) return this.#evict(strangers.find(isIdle))
    if (this.#tracked.size < maxConnections) return true
    const all = [...this.#tracked.values()]
    const victim = strangers.find(isIdle) ?? all.find(isIdle) ?? (isLocal ? strangers[0] : undefined)
    return this.#evict(victim)
  }

  #those(isIt: (tracked: Tracked) => boolean): readonly Tracked[] {
    return [...this.#tracked.values()].filter(isIt)
  }

  /** Returns whether there was one. */
  #evict(tracked: Tracked | undefined): boolean {
    if (tracked !== undefined) this.#drop(tracked, 'evicted')
    return tracked !== undefined
  }

  #moveLast(tracked: Tracked): void {
    tracked.sinceMs = performance.now()
    if (!this.#tracked.delete(tracked.socket)) return
    this.#tracked.set(tracked.socket, tracked)
    this.#sweepBy(tracked)
  }

  /** When the time of a connection ends. */
  #endMs(tracked: Tracked): number {
    const { maxFirstMs, maxIdleMs, maxBusyMs } = this.#limits
    const maxMs = !tracked.hasAsked ? maxFirstMs : isIdle(tracked) ? maxIdleMs : maxBusyMs
    return tracked.sinceMs + maxMs
  }

  /** Lets the sweeper look when the time of this connection ends, if it would not before. */
  #sweepBy(tracked: Tracked): void {
    const nowMs = performance.now()
    const sweepMs = Math.max(this.#endMs(tracked), nowMs + SWEEP_MS)
    if (sweepMs >= this.#sweepMs) return
    clearTimeout(this.#sweeper)
    this.#sweepMs = sweepMs
    this.#sweeper = setTimeout(() => this.#sweep(), sweepMs - nowMs).unref()
  }

  #sweep(): void {
    const nowMs = performance.now()
    this.#sweepMs = Number.POSITIVE_INFINITY
    for (const tracked of this.#tracked.values()) if (nowMs >= this.#endMs(tracked)) this.#drop(tracked, 'timeout')
    for (const tracked of this.#tracked.values()) this.#sweepBy(tracked)
  }

  #drop(tracked: Tracked, reason: HttpDropReason): void {
    this.#count(reason)
    this.#forget(tracked)
    tracked.socket.destroy()
  }

  #forget(tracked: Tracked): void {
    tracked.socket.off('close', tracked.onClose)
    if (!this.#tracked.delete(tracked.socket)) return
    clearTimeout(tracked.rest)
    if (this.#tracked.size > 0) return
    clearTimeout(this.#sweeper)
    this.#sweepMs = Number.POSITIVE_INFINITY
  }

  #count(reason: HttpDropReason): void {
    this.#droppedCounts[reason] = (this.#droppedCounts[reason] ?? 0) + 1
  }
}

function isIdle({ pendingCount }: Tracked): boolean {
  return pendingCount === 0
}
