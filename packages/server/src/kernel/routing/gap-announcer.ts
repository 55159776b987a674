import type { GapReason } from 'webmq-client/protocol'
import type { Route, Router } from '../patterns/router.js'
import type { GroupId } from '../ports/transport.js'

/** Patterns per turn of the event loop: a node with very many must not block while it tells all of them. */
const PATTERNS_PER_TURN = 1_000

interface Unannounced {
  readonly route: Route
  readonly reason: GapReason
}

/**
 * Tells the listeners of every pattern that messages may be missing, over several turns, each before its next message.
 * A message with a position ends that: it counts for all patterns of a connection [P-8.7], so all are told before it.
 */
export class GapAnnouncer {
  readonly #router: Router
  readonly #tellRoute: (route: Route, reason: GapReason) => void
  readonly #unannounced = new Map<GroupId, Unannounced>()
  #timer: NodeJS.Immediate | undefined

  constructor(router: Router, tell: (route: Route, reason: GapReason) => void) {
    this.#router = router
    this.#tellRoute = tell
  }

  /** Whether some listeners have not been told yet. */
  get isTelling(): boolean {
    return this.#unannounced.size > 0
  }

  /** Begins to tell all current listeners of the affected patterns. */
  announce(reason: GapReason, isAffected: (pattern: string) => boolean): void {
    for (const route of this.#router.routes()) {
      if (isAffected(route.pattern)) this.#unannounced.set(route.group, { route, reason })
    }
    this.#tellSome()
  }

  /**
   * As {@link announce}, for the listeners of these groups, at the end of the turn: however many messages are missing,
   * they are told once. Cost: O(groups).
   */
  announceTo(groups: readonly GroupId[], reason: GapReason): void {
    for (const group of groups) {
      const route = this.#router.routeOf(group)
      // What is known of a route that has gone says nothing of the one that has its number now.
      const isKnown = this.#unannounced.get(group)?.route === route
      if (route !== undefined && !isKnown) this.#unannounced.set(group, { route, reason })
    }
    clearImmediate(this.#timer)
    this.#timer = setImmediate(() => this.#tellSome())
  }

  /**
   * A message is about to go to these groups. Cost: one comparison, except in the turns after a gap.
   * @param hasPosition Tells everyone now, not only these groups.
   */
  beforeMessage(groups: readonly GroupId[], hasPosition: boolean): void {
    if (this.#unannounced.size === 0) return
    for (const group of hasPosition ? [...this.#unannounced.keys()] : groups) this.#tell(group)
  }

  /** Members of a group are about to leave it: what is told there later does not reach them. */
  beforeLeaving(group: GroupId): void {
    this.#tell(group)
  }

  stop(): void {
    this.#unannounced.clear()
    clearImmediate(this.#timer)
  }

  #tellSome(): void {
    clearImmediate(this.#timer)
    let count = 0
    for (const group of this.#unannounced.keys()) {
      if (count++ >= PATTERNS_PER_TURN) {
        this.#timer = setImmediate(() => this.#tellSome())
        return
      }
      this.#tell(group)
    }
  }

  #tell(group: GroupId): void {
    const gap = this.#unannounced.get(group)
    if (gap === undefined) return
    this.#unannounced.delete(group)
    const { route, reason } = gap
    // Group numbers are reused; the current owner did not miss anything.
    if (this.#router.routeOf(group) === route) this.#tellRoute(route, reason)
  }
}
