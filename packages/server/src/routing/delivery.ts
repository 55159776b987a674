import { encodeServerMessage, type GapReason, isKey, MessageFrame, matches } from 'webmq-client/protocol'
import type { LocalListeners } from '../in-process/listeners.js'
import type { PublishTimings } from '../measuring/publish-timings.js'
import type { Route, Router } from '../patterns/router.js'
import { mayDrop } from '../patterns/variant.js'
import type { InboundMessage } from '../ports/broker.js'
import type { ConnectionId, Transport } from '../ports/transport.js'
import type { LiveBuffers } from '../replay/live-buffers.js'
import { GapAnnouncer } from './gap-announcer.js'
import { Topics } from './topics.js'

/** What a {@link Delivery} works with. */
export interface DeliveryContext {
  readonly router: Router
  readonly transport: Pick<Transport, 'multicast'>
  readonly liveBuffers: LiveBuffers
  readonly localListeners: LocalListeners
  readonly publishes: Pick<PublishTimings, 'isAwaiting' | 'delivered'>
}

/** Sends the messages of the broker to their listeners on this node. */
export class Delivery {
  readonly #context: DeliveryContext
  readonly #gaps: GapAnnouncer
  readonly #gapCounts: { [Reason in GapReason]?: number } = {}
  /** Written into the transport's own memory before the next message fills it. */
  readonly #frame = new MessageFrame()
  readonly #topics = new Topics()
  #routedCount = 0

  constructor(context: DeliveryContext) {
    this.#context = context
    this.#gaps = new GapAnnouncer({ router: context.router, tell: (route, reason) => this.#tellGap(route, reason) })
  }

  /** Messages that someone on this node listened to. */
  get routedCount(): number {
    return this.#routedCount
  }

  /** Whether some listeners have not been told of a gap yet. */
  get isTellingGap(): boolean {
    return this.#gaps.isTelling
  }

  /** Gaps that were told, one per pattern, by reason. */
  get gapCounts(): Readonly<Partial<Record<GapReason, number>>> {
    return { ...this.#gapCounts }
  }

  /**
   * Encodes the message once, whatever the number of listeners; cost: one look-up per key that was seen lately.
   * @returns Whether anyone on this node listens, or has asked to.
   */
  deliver(message: InboundMessage): boolean {
    const { router, transport, liveBuffers, localListeners, publishes } = this.#context
    const groups = router.match(message.key)
    if (groups.length === 0) return false
    liveBuffers.deliver(groups, message)
    this.#gaps.beforeMessage(groups, message.position !== undefined)
    this.#routedCount++
    const frame = this.#frame.fill(message.key, message.position, false, message.payload)
    const except = message.publisher as ConnectionId | undefined
    const topic = router.hasDropping && groups.some(mayDrop) ? this.#topics.of(message.key) : undefined
    transport.multicast(groups, frame, message.isBinary, except, topic)
    localListeners.deliver(groups, message)
    if (publishes.isAwaiting) publishes.delivered(message)
    return true
  }

  /**
   * Tells the listeners of all affected patterns that messages may be missing before the next. Cost: one multicast per pattern,
   * over several turns.
   */
  gap(reason: GapReason, isAffected: (pattern: string) => boolean = () => true): void {
    this.#context.liveBuffers.gap(reason, isAffected)
    this.#gaps.announce(reason, isAffected)
  }

  /**
   * Messages with these keys were refused: listeners whose pattern matches are told before their next message, once per
   * turn of the event loop. Cost: one lookup for a key; every pattern for `#`.
   * @param keys A key, or `#`.
   */
  refused(keys: string): void {
    if (!isKey(keys)) {
      this.gap('refused')
      return
    }
    const { router, liveBuffers } = this.#context
    liveBuffers.gap('refused', (pattern) => matches(pattern, keys))
    this.#gaps.announceTo(router.match(keys), 'refused')
  }

  /** Ends all announcements. */
  stop(): void {
    this.#gaps.stop()
  }

  #tellGap({ pattern, group }: Route, reason: GapReason): void {
    const { transport, localListeners } = this.#context
    this.#gapCounts[reason] = (this.#gapCounts[reason] ?? 0) + 1
    transport.multicast([group], encodeServerMessage({ verb: 'gap', pattern, reason }), false)
    localListeners.gap(group, reason)
  }
}
