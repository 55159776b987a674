import { encodeServerMessage } from 'webmq-client/protocol'
import { andThen, isPromise, type MaybePromise } from '../base/maybe-promise.js'
import type { Route } from '../patterns/router.js'
import { DEFAULT_VARIANT, isMeta, mayDrop, overflowOf, type Variant, withMeta } from '../patterns/variant.js'
import type { ConnectionId, GroupOverflow, Transport } from '../ports/transport.js'
import { isSearch } from '../ports/word-limits.js'
import type { Delivery } from './delivery.js'
import type { Interest } from './interest.js'
import type { LiveBuffer, LiveBuffers } from './live-buffers.js'

export interface ListensContext {
  readonly transport: Pick<Transport, 'join' | 'leave' | 'setOverflow'>
  readonly interest: Pick<Interest, 'retain' | 'retainLive' | 'release' | 'routeOf'>
  readonly delivery: Pick<Delivery, 'tellGapBeforeLeaving'>
  readonly liveBuffers: LiveBuffers
  /** Memory of live messages kept for a listen that waits for the broker. */
  readonly maxLiveBufferBytes: number
  /** Is told of each listen of a connection, by its pattern; absent: nobody wants to know. */
  readonly occupancy?: { listened(pattern: string): void; unlistened(pattern: string): void } | undefined
  /** Is told of each listen of a connection that begins (1), or ends while the connection stays (-1). */
  readonly listensChanged: (connection: ConnectionId, by: 1 | -1) => void
}

/** A listen that has begun: the broker is asked, live messages are buffered, the connection gets nothing yet. */
export interface ListenOpening {
  /** Settles when the pattern is live on this node. */
  readonly bound: MaybePromise<void>
  readonly buffer: LiveBuffer
  /** Goes live: frames that the transport gets from now on follow those it got before. */
  commit(): void
  /** Takes everything back. */
  abort(): void
}

/** The patterns that one connection listens with. */
export class Listens {
  readonly #connection: ConnectionId
  readonly #context: ListensContext
  /** Most connections have one listen, and a map of one takes more memory than the rest of a session. */
  #only: Route | undefined
  /** All listens, from the second one on. */
  #routes: Map<string, Route> | undefined
  /** Patterns with a `#` before their last word. */
  searchCount = 0
  /** One of its listens has asked for meta. */
  #hasMeta = false
  #isClosed = false

  constructor(connection: ConnectionId, context: ListensContext) {
    this.#connection = connection
    this.#context = context
  }

  get size(): number {
    return this.#routes?.size ?? (this.#only === undefined ? 0 : 1)
  }

  has(pattern: string): boolean {
    return this.#find(pattern) !== undefined
  }

  /**
   * Begins to listen. A pattern that the connection listens with already is not affected by `abort`; `commit` changes its
   * variant. Once a listen has meta, all of the connection have it: a message is encoded once for the connection, whichever
   * of its listens match.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`, here or from `bound`, which then is followed by `abort`.
   */
  open(pattern: string, variant: Variant = DEFAULT_VARIANT): ListenOpening {
    const { liveBuffers, interest, maxLiveBufferBytes } = this.#context
    if (isMeta(variant)) this.#addMeta()
    const wanted = this.#hasMeta ? withMeta(variant) : variant
    const known = this.#find(pattern)
    const own = known?.variant === wanted ? known : undefined
    const retained = own ?? interest.retain(pattern, wanted)
    const bound = andThen(retained, () => undefined)
    // Routed already: messages that arrive before it is bound are buffered, too.
    const route = isPromise(retained) ? interest.routeOf(pattern, wanted) : retained
    if (route === undefined) throw new TypeError('a retained pattern has a route')
    const buffer = liveBuffers.start(route, maxLiveBufferBytes)
    let isBound = !isPromise(bound)
    let isAborted = false
    const free = () => {
      if (own === undefined && isBound && isAborted) this.#release(route)
    }
    if (isPromise(bound)) {
      bound.then(
        () => {
          isBound = true
          free()
        },
        () => undefined,
      )
    }
    let isOver = false
    const end = () => {
      isOver = true
      liveBuffers.end(route.group, buffer)
    }
    const abort = () => {
      if (isOver) return
      end()
      isAborted = true
      free()
    }
    const commit = () => {
      if (this.#isClosed) return abort()
      end()
      if (own !== undefined) return
      // Another listen may have asked for meta meanwhile.
      const isLate = this.#hasMeta && !isMeta(route.variant)
      const live = isLate ? interest.retainLive(pattern, withMeta(route.variant)) : route
      if (isLate) this.#release(route)
      // Before the old group is left: nothing between them is missing.
      this.#join(live)
      this.end(pattern)
      this.#add(live)
    }
    return { bound, buffer, commit, abort }
  }

  #join(route: Route): void {
    const { transport } = this.#context
    // For each listener: an I/O thread that starts again has forgotten it.
    if (mayDrop(route.group)) transport.setOverflow(route.group, groupOverflowOf(route))
    transport.join(this.#connection, route.group)
  }

  #leave(route: Route): void {
    const { delivery, transport } = this.#context
    delivery.tellGapBeforeLeaving(route.group)
    transport.leave(this.#connection, route.group)
    this.#release(route)
  }

  /** Moves all listens to variants with meta. In one turn of the event loop, so that no message comes in between. */
  #addMeta(): void {
    if (this.#hasMeta) return
    this.#hasMeta = true
    const moved = (route: Route) => {
      const live = this.#context.interest.retainLive(route.pattern, withMeta(route.variant))
      this.#join(live)
      this.#leave(route)
      return live
    }
    if (this.#only !== undefined) this.#only = moved(this.#only)
    for (const [pattern, route] of this.#routes ?? []) this.#routes?.set(pattern, moved(route))
  }

  /** Ends a listen; returns whether there was one. */
  end(pattern: string): boolean {
    const route = this.#find(pattern)
    if (route === undefined) return false
    this.#only = undefined
    this.#routes?.delete(pattern)
    if (isSearch(pattern)) this.searchCount--
    this.#leave(route)
    this.#context.occupancy?.unlistened(pattern)
    this.#context.listensChanged(this.#connection, -1)
    return true
  }

  /** Ends the listens that are no longer granted and returns their patterns. */
  revoke(isGranted: (pattern: string) => boolean): string[] {
    return this.patterns().filter((pattern) => !isGranted(pattern) && this.end(pattern))
  }

  close(): void {
    this.#isClosed = true
    for (const route of this.#all()) {
      this.#release(route)
      this.#context.occupancy?.unlistened(route.pattern)
    }
    this.#only = undefined
    this.#routes = undefined
    this.searchCount = 0
  }

  #release({ pattern, variant, group }: Route): void {
    const { interest, transport } = this.#context
    interest.release(pattern, variant)
    if (mayDrop(group) && interest.routeOf(pattern, variant) === undefined) transport.setOverflow(group, undefined)
  }

  #find(pattern: string): Route | undefined {
    return this.#only?.pattern === pattern ? this.#only : this.#routes?.get(pattern)
  }

  #add(route: Route): void {
    this.#context.listensChanged(this.#connection, 1)
    this.#context.occupancy?.listened(route.pattern)
    if (isSearch(route.pattern)) this.searchCount++
    if (this.#only === undefined && this.#routes === undefined) {
      this.#only = route
      return
    }
    this.#routes ??= new Map()
    if (this.#only !== undefined) this.#routes.set(this.#only.pattern, this.#only)
    this.#only = undefined
    this.#routes.set(route.pattern, route)
  }

  patterns(): string[] {
    return this.#all().map(({ pattern }) => pattern)
  }

  #all(): Route[] {
    return this.#only === undefined ? [...(this.#routes?.values() ?? [])] : [this.#only]
  }
}

function groupOverflowOf({ pattern, variant }: Route): GroupOverflow | undefined {
  switch (overflowOf(variant)) {
    case 'disconnect':
      return undefined
    case 'drop-oldest':
      return { policy: 'drop-oldest', notice: encodeServerMessage({ verb: 'gap', pattern, reason: 'slow-consumer' }) }
    case 'latest':
      return { policy: 'latest' }
    case 'latest-told':
      return { policy: 'latest', notice: encodeServerMessage({ verb: 'gap', pattern, reason: 'conflated' }) }
  }
}
