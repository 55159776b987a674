import {
  encodeMeta,
  encodeServerMessage,
  type GapReason,
  isKey,
  MessageFrame,
  matches,
  type TextServerMessage,
} from 'webmq-client/protocol'
import type { Route, Router } from '../patterns/router.js'
import { getsMeta, isSse, mayDrop } from '../patterns/variant.js'
import type { InboundMessage } from '../ports/broker.js'
import type { KeyRules } from '../ports/key-rules.js'
import type { ConnectionId, GroupId, Transport } from '../ports/transport.js'
import { GapAnnouncer } from './gap-announcer.js'
import type { LiveBuffers } from './live-buffers.js'
import type { LocalListeners } from './local-listeners.js'

/** How messages are written to event streams. */
export interface EventFormat {
  encodeMessage(message: InboundMessage, isReplayed: boolean, hasMeta: boolean): string
  /** Of the server. */
  encode(message: TextServerMessage): string
}

export interface DeliveryContext {
  readonly router: Router
  readonly transport: Pick<Transport, 'multicast'>
  readonly liveBuffers: LiveBuffers
  readonly localListeners: LocalListeners
  readonly events: EventFormat
  /** Measures some of the publishes. */
  readonly publishes: { readonly isAwaiting: boolean; delivered(message: InboundMessage): void }
  /** Their messages are not held back. */
  readonly urgentKeys: Pick<KeyRules, 'covers'>
}

/** Sends the messages of the broker to their listeners on this node. */
export class Delivery {
  readonly #context: DeliveryContext
  readonly #gaps: GapAnnouncer
  readonly #gapCounts: { [Reason in GapReason]?: number } = {}
  /** Written into the transport's own memory before the next message fills it. */
  readonly #frame = new MessageFrame()
  readonly #topics = new Topics()
  /** Messages that someone on this node listened to. */
  routedCount = 0

  constructor(context: DeliveryContext) {
    this.#context = context
    this.#gaps = new GapAnnouncer(context.router, (route, reason) => this.#tellGap(route, reason))
  }

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
    const { router, liveBuffers, localListeners, publishes } = this.#context
    const groups = router.match(message.key)
    if (groups.length === 0) return false
    liveBuffers.deliver(groups, message)
    this.#gaps.beforeMessage(groups, message.position !== undefined)
    this.routedCount++
    if (this.#mayReachConnections(groups)) this.#deliverToConnections(groups, message)
    localListeners.deliver(groups, message)
    if (publishes.isAwaiting) publishes.delivered(message)
    return true
  }

  /**
   * Whether some reference of a route is of a connection: it listens, or has asked to. For the others the transport is not
   * called, which would wake its threads.
   */
  #mayReachConnections(groups: readonly GroupId[]): boolean {
    const { router, localListeners } = this.#context
    if (localListeners.isEmpty) return true
    return groups.some((group) => router.routeOf(group)?.references !== localListeners.countOf(group))
  }

  #deliverToConnections(groups: readonly GroupId[], message: InboundMessage): void {
    const { router } = this.#context
    const receivers = router.routeCountOf('sse') === 0 ? groups : this.#deliverToStreams(groups, message)
    const { attributes } = message
    const place = attributes?.stream === undefined ? '' : encodeMeta({ stream: attributes.stream })
    const meta = attributes !== undefined && router.metaCount > 0 ? encodeMeta(attributes) : place
    if (meta === place) {
      this.#multicast(receivers, message, place)
      return
    }
    // A connection is in groups of one kind alone, so it gets one of the two frames.
    const isPlain = (group: GroupId) => !getsMeta(group)
    this.#multicast(receivers.filter(isPlain), message, place)
    this.#multicast(receivers.filter(getsMeta), message, meta)
  }

  /** @param meta Options of the frame. */
  #multicast(groups: readonly GroupId[], message: InboundMessage, meta: string): void {
    if (groups.length === 0) return
    const { router, transport, urgentKeys } = this.#context
    const frame = this.#frame.fill(message.key, message.position, false, message.payload, meta)
    const except = message.publisher as ConnectionId | undefined
    const topic = router.droppingCount > 0 && groups.some(mayDrop) ? this.#topics.of(message.key) : undefined
    transport.multicast(groups, frame, message.isBinary, except, topic, urgentKeys.covers(message.key))
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

  /** As {@link GapAnnouncer.beforeLeaving}. */
  tellGapBeforeLeaving(group: GroupId): void {
    this.#gaps.beforeLeaving(group)
  }

  stop(): void {
    this.#gaps.stop()
  }

  /** Encodes the message for event streams, if any gets it; the groups of all others. */
  #deliverToStreams(groups: readonly GroupId[], message: InboundMessage): readonly GroupId[] {
    const streams = groups.filter(isSse)
    if (streams.length === 0) return groups
    const { events, router, transport, urgentKeys } = this.#context
    const isUrgent = urgentKeys.covers(message.key)
    const send = (to: readonly GroupId[], withMeta: boolean) => {
      if (to.length === 0) return
      transport.multicast(to, events.encodeMessage(message, false, withMeta), false, undefined, undefined, isUrgent)
    }
    const hasMeta = message.attributes !== undefined && router.metaCount > 0
    const metaStreams = hasMeta ? streams.filter(getsMeta) : []
    const plainStreams = hasMeta ? streams.filter((group) => !getsMeta(group)) : streams
    send(plainStreams, false)
    send(metaStreams, true)
    return groups.filter((group) => !isSse(group))
  }

  #tellGap({ pattern, group }: Route, reason: GapReason): void {
    const { events, transport, localListeners } = this.#context
    this.#gapCounts[reason] = (this.#gapCounts[reason] ?? 0) + 1
    const gap = { verb: 'gap', pattern, reason } as const
    transport.multicast([group], isSse(group) ? events.encode(gap) : encodeServerMessage(gap), false)
    localListeners.gap(group, reason)
  }
}

/** Keys that have a number at a time; each takes its text and about 100 bytes. */
const MAX_KEYS = 65_536
const NUMBERS = 2 ** 32

/**
 * Numbers of keys, for the transport, which knows no keys: a newer message of a key may replace an older one that waits.
 *
 * A number is given to one key only, until 2^32 more were given. A key may get another number after {@link MAX_KEYS} other
 * keys: an older message then waits beside a newer one, which is correct.
 */
export class Topics {
  readonly #numbers = new Map<string, number>()
  #next = 0

  of(key: string): number {
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    if (this.#numbers.size >= MAX_KEYS) this.#numbers.clear()
    const number = this.#next
    this.#next = (number + 1) % NUMBERS
    this.#numbers.set(key, number)
    return number
  }
}
