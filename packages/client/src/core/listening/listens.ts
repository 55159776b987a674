import { WebMQError } from '../../protocol/errors.js'
import { matches } from '../../protocol/matching.js'
import type { ServerMessage } from '../../protocol/messages.js'
import { checkPattern } from '../checks.js'
import { createTimer } from '../connection/timer.js'
import type { Gap } from '../events/events.js'
import { decodePayload } from '../publishing/payload.js'
import type { ListenOptions, Message } from '../types.js'
import { createAsking, type ListensCore } from './asking.js'
import { isActive, isLive, type Listen } from './listen.js'
import type { Receiving } from './receiver.js'
import type { ReplayTarget } from './replays.js'
import { LiveSubscription, type SubscriptionContext } from './subscription.js'

type From<V extends ServerMessage['verb']> = Extract<ServerMessage, { verb: V }>

/** Limit of the keys whose subscriptions are kept. Limits memory when keys contain ids. */
const MAX_KNOWN_KEYS = 1_024

/** The registry of subscriptions. Listens again after a reconnect, and reports gaps. */
export interface Listens {
  /** Number of patterns. */
  readonly size: number
  /**
   * Adds a subscription.
   * @param closedBy Why the client is closed. The subscription begins when it is opened.
   * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`; then nothing was added.
   */
  add(pattern: string, receiving: Receiving<unknown>, options?: ListenOptions, closedBy?: WebMQError): LiveSubscription
  /** Takes the subscriptions of another client. They continue from where they stopped. */
  adopt(others: Listens): void
  /** Gives all subscriptions away. */
  release(): readonly LiveSubscription[]
  /** Ends the last subscription of this handler, or all of the pattern. Resolves when the server knows. */
  unlisten(pattern: string, receiving?: unknown): Promise<void>
  /** A connection is live: every subscription listens again, from where it stopped. */
  up(): void
  /** The connection is lost. */
  down(): void
  /** The client is closed. Loops end; subscriptions with handlers wait for {@link Listens.open}. */
  close(error: WebMQError, isWanted: boolean): void
  /** The client is opened again. */
  open(): void
  /** Every live message up to this position has arrived [P-9.7]. */
  advance(position: string | undefined): void
  /** Passes a message to each receiver of each matching pattern, once. Cost for a known key: O(receivers). */
  deliver(message: From<'message'>): void
  /**
   * The server has ended a listen that a new token does not grant [P-5.5]. Pending subscriptions get their own answer.
   */
  revoked(pattern: string, error: WebMQError): void
  /** The server has lost messages on their way to this connection. */
  gap(message: From<'gap'>): void
}

export function createListens(core: ListensCore, onGap: (gap: Gap) => void): Listens {
  const { options, sender, replays, report } = core
  const listens = new Map<string, Listen>()
  /** Subscriptions by key, for the next message with it. Emptied when any subscription comes or goes. */
  const targetsByKey = new Map<string, readonly LiveSubscription[]>()
  /** Position of the last live message. Earlier messages of a listen that was live before it have arrived [P-8.7]. */
  let latest: string | undefined
  const context: SubscriptionContext = {
    options,
    report,
    onGap,
    remove,
    // An active subscription has a listen.
    again: (active) => asking.ask(listens.get(active.pattern) as Listen, [active]),
  }
  const asking = createAsking(
    core,
    onGap,
    () => latest,
    () => saved?.touch(),
    end,
  )
  const saved = options.resume?.({
    name: typeof options.url === 'function' ? '' : `${options.url}`,
    collect: () =>
      [...subscriptions()].filter(({ recovers }) => recovers).map((one) => [one.pattern, one.handled(latest)]),
    onError: (error) => report({ error }),
  })

  function add(
    pattern: string,
    receiving: Receiving<unknown>,
    given?: ListenOptions,
    closedBy?: WebMQError,
  ): LiveSubscription {
    checkPattern(pattern)
    const subscription = new LiveSubscription(pattern, receiving, given, context)
    if (subscription.state === 'closed') return subscription
    if (closedBy) {
      report({ error: closedBy, pattern })
      if (!subscription.shut(closedBy, false)) return subscription
    }
    // The first subscription of a pattern continues where the previous page stopped. Later ones join it.
    if (subscription.recovers && isLive(subscription.start) && !of(pattern).some(isActive)) {
      subscription.advance(saved?.get(pattern))
    }
    insert(subscription)
    return subscription
  }

  function release(): readonly LiveSubscription[] {
    const released = [...subscriptions()]
    down()
    saved?.close()
    // Requests that are answered later find nothing here.
    for (const listen of listens.values()) listen.all = []
    listens.clear()
    targetsByKey.clear()
    return released
  }

  function insert(subscription: LiveSubscription): void {
    const { pattern } = subscription
    const listen = listens.get(pattern) ?? { pattern, all: [], attempt: 0, timer: createTimer() }
    listen.all = [...listen.all, subscription]
    listens.set(pattern, listen)
    targetsByKey.clear()
    if (sender.isLive) asking.join(listen, subscription)
  }

  function down(): void {
    asking.down()
    for (const listen of listens.values()) {
      listen.timer()
      for (const subscription of listen.all) subscription.down(latest)
    }
  }

  function deliver(received: From<'message'>): void {
    const { key, position, replayed } = received
    const replay = replayed ? replays.current : undefined
    const targets = replayed ? replay?.targets : (targetsByKey.get(key) ?? match(key))
    if (targets && targets.length > 0) handOver(targets, received)
    if (replay) replays.passed(replay)
    // Last, because a handler may end the connection. Replays do not count: the log may be ahead of live messages.
    else if (position !== undefined && !replayed) latest = position
    saved?.touch()
  }

  function handOver(targets: readonly ReplayTarget[], received: From<'message'>): void {
    const { key, position, replayed, meta } = received
    let payload: unknown
    try {
      // A stream of bytes has no codec.
      payload = decodePayload(received.payload, meta?.stream ? undefined : options.codec)
    } catch (cause) {
      report({ error: new WebMQError('E_PAYLOAD_INVALID', { detail: key, cause }), key })
      return
    }
    const message: Message<unknown> = { key, payload, position, replayed, ...meta }
    for (const target of targets) target.deliver(message, received.payload.length)
  }

  function match(key: string): readonly LiveSubscription[] {
    const found = [...subscriptions()].filter(({ pattern }) => matches(pattern, key))
    if (targetsByKey.size >= MAX_KNOWN_KEYS) targetsByKey.clear()
    targetsByKey.set(key, found)
    return found
  }

  function of(pattern: string): readonly LiveSubscription[] {
    return listens.get(pattern)?.all ?? []
  }

  function* subscriptions(): Iterable<LiveSubscription> {
    for (const listen of listens.values()) yield* listen.all
  }

  function end(pattern: string, ended: readonly LiveSubscription[], error: WebMQError): void {
    report({ error, pattern })
    for (const subscription of ended) {
      subscription.end(error, false)
      forget(subscription)
    }
  }

  /** Removes a subscription. Returns whether it was the last of its pattern. */
  function forget(subscription: LiveSubscription): boolean {
    const listen = listens.get(subscription.pattern)
    if (!listen?.all.includes(subscription)) return false
    listen.all = listen.all.filter((other) => other !== subscription)
    targetsByKey.clear()
    if (listen.all.length > 0) return false
    asking.forget(listen)
    return listens.delete(listen.pattern)
  }

  async function remove(subscription: LiveSubscription): Promise<void> {
    const { pattern } = subscription
    if (!forget(subscription)) return
    // Keep the position if the subscription was never live: frameworks end a subscription and start it again at once.
    if (subscription.wasLive) saved?.forget(pattern)
    if (sender.isLive) await asking.unlisten(pattern)
  }

  return {
    get size() {
      return listens.size
    },
    add,
    adopt(others) {
      for (const subscription of others.release()) {
        subscription.context = context
        if (subscription.state === 'closed') subscription.reopen()
        insert(subscription)
      }
    },
    release,
    async unlisten(pattern, receiving) {
      const found = of(pattern)
      const gone = receiving
        ? found.filter(({ receiver }) => receiver === receiving || receiver.handler === receiving).slice(-1)
        : found
      await Promise.all(gone.map((subscription) => subscription.close()))
    },
    up() {
      for (const listen of listens.values()) asking.listen(listen)
    },
    down,
    close(error, isWanted) {
      for (const subscription of release()) if (subscription.shut(error, isWanted)) insert(subscription)
    },
    open() {
      for (const subscription of subscriptions()) subscription.reopen()
    },
    advance(position) {
      latest = position ?? latest
      saved?.touch()
    },
    deliver,
    revoked: (pattern, error) => end(pattern, of(pattern).filter(isActive), error),
    gap({ pattern, reason }) {
      const found = of(pattern)
      const gap = { pattern, reason, since: found[0]?.position }
      for (const subscription of found) subscription.gap(gap)
      onGap(gap)
    },
  }
}
