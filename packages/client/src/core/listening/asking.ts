import { encodeListen, encodeUnlisten } from '../../protocol/encode-client.js'
import { WebMQError } from '../../protocol/errors.js'
import type { GapReason, ServerMessage } from '../../protocol/messages.js'
import { backoffMs } from '../connection/backoff.js'
import type { Sender } from '../connection/sender.js'
import { createTimer } from '../connection/timer.js'
import type { ClientError, Gap } from '../events/events.js'
import type { ResolvedOptions } from '../options.js'
import { hasMeta, isActive, isLive, isMixed, type Listen } from './listen.js'
import type { Replays } from './replays.js'
import type { Requests, Start } from './requests.js'
import type { LiveSubscription } from './subscription.js'

/** What listens use of their client. */
export interface ListensCore {
  readonly options: ResolvedOptions
  readonly sender: Sender
  readonly requests: Requests
  readonly replays: Replays
  report(error: ClientError): void
}

/** Asks the server for listens: the answers, the pages of replays, and what is tried again later. */
export interface Asking {
  /** The connection is lost. */
  down(): void
  /** Joins an existing listen if the subscription needs no replay; otherwise sends a listen of its own. */
  join(listen: Listen, subscription: LiveSubscription): void
  /** Sends a listen for all pending subscriptions; those with the same start share one. */
  listen(listen: Listen): void
  /** Sends a listen for these subscriptions, which begin at the same place. */
  ask(listen: Listen, targets: LiveSubscription[]): void
  /** The last subscription of the listen has ended. It is tried no more. */
  forget(listen: Listen): void
  /** Ends the listen on the server, which then has room for another one. */
  unlisten(pattern: string): Promise<void>
}

/**
 * @param latest Position of the last live message.
 * @param touch Positions have moved.
 * @param end The server has ended these subscriptions.
 */
export function createAsking(
  { options, sender, requests, replays, report }: ListensCore,
  onGap: (gap: Gap) => void,
  latest: () => string | undefined,
  touch: () => void,
  end: (pattern: string, subscriptions: readonly LiveSubscription[], error: WebMQError) => void,
): Asking {
  /** Listens for which the server has no room, in the order in which they are tried again. */
  const held = new Set<Listen>()
  const heldTimer = createTimer()
  let downCount = 0

  function listenAgain(listen: Listen): void {
    const groups = new Map<string, LiveSubscription[]>()
    for (const subscription of listen.all) {
      if (subscription.state !== 'pending') continue
      const start = JSON.stringify(subscription.start)
      groups.set(start, [...(groups.get(start) ?? []), subscription])
    }
    for (const targets of groups.values()) ask(listen, targets)
  }

  function ask(listen: Listen, targets: LiveSubscription[]): void {
    const { pattern } = listen
    const start = targets[0]?.start ?? {}
    const overflow = isMixed(listen) ? 'disconnect' : listen.all[0]?.options.overflow
    if (isLive(start)) listen.pending = targets
    requests.send(
      (id) => encodeListen({ id, pattern, ...start, overflow, meta: hasMeta(listen) || undefined }),
      (answer) => {
        if (listen.pending === targets) listen.pending = undefined
        if (answer instanceof WebMQError) refused(listen, targets, answer)
        else accepted(listen, targets, start, answer)
      },
    )
  }

  function accepted(
    listen: Listen,
    targets: readonly LiveSubscription[],
    { since, state }: Start,
    ok: Extract<ServerMessage, { verb: 'ok' }>,
  ): void {
    const { pattern } = listen
    if (state && !ok.state) {
      // It ignores the option, and would give no state.
      end(pattern, targets, new WebMQError('E_UNSUPPORTED', { detail: 'state' }))
      return
    }
    const { recovered = false, replayed = 0, position, gap, more } = ok
    const isIdle = more && !replayed
    if (!isIdle) listen.attempt = 0
    if (held.delete(listen)) takeUp()
    let reported: GapReason | undefined
    for (const subscription of targets) {
      if (subscription.state !== 'pending') continue
      // Without `recovered` and without a gap, the messages in between count as lost. A log that has a position has lost its
      // end: the server has refused that of the subscription.
      const isResuming = since !== undefined || (subscription.recovers && subscription.wasLive)
      const reason = gap ?? (isResuming && !recovered ? (position ? 'broker-lost' : 'no-history') : undefined)
      reported ??= reason
      subscription.accept({ recovered, replayed, position, gap: reason }, !more, latest(), since)
    }
    if (reported) onGap({ pattern, reason: reported, since })
    replays.expect(ok, targets, () => {
      for (const target of targets) target.advance(position)
      touch()
      // A page that brings nothing costs its server nothing, and it may say `more` for ever.
      if (isIdle) askLater(listen)
      else if (more) turnPage(listen, targets)
      else for (const target of targets) target.caughtUp()
    })
  }

  /**
   * Requests the next page of a replay: at once for subscriptions that have read this one, for each other once it has.
   * So the reader sets the pace of its replay [P-6.9], and a slow reader delays nobody else.
   */
  function turnPage(listen: Listen, targets: readonly LiveSubscription[]): void {
    const countBefore = downCount
    const askNext = (readers: readonly LiveSubscription[]) => {
      const open = readers.filter(({ state }) => state === 'pending')
      if (open.length > 0 && downCount === countBefore) ask(listen, open)
    }
    askNext(
      targets.filter(
        (subscription) =>
          !subscription.receiver
            .backlog?.()
            ?.whenHandled()
            .then(() => askNext([subscription])),
      ),
    )
  }

  function refused(listen: Listen, targets: LiveSubscription[], error: WebMQError): void {
    const { pattern } = listen
    if (error.retryable) {
      askLater(listen)
    } else if (error.code === 'E_LISTEN_LIMIT') {
      // The app has ended it meanwhile.
      if (!listen.all.length) return
      // At the end of the queue, because another one may fit.
      held.delete(listen)
      held.add(listen)
      for (const subscription of targets) if (subscription.hold(error)) report({ error, pattern })
      waitForRoom()
    } else if (error.code === 'E_POSITION_INVALID' && targets.some((target) => target.position)) {
      // The broker was replaced and cannot read positions of the previous one: continue, with a gap.
      for (const target of targets) target.lost()
      ask(listen, targets)
    } else end(pattern, targets, error)
  }

  function askLater(listen: Listen): void {
    if (!sender.isLive) return
    listen.timer(() => listenAgain(listen), backoffMs(listen.attempt++, options))
  }

  /** There may be room: tries the listen that has waited longest for it. */
  function takeUp(): void {
    const [listen] = held
    if (!listen || !sender.isLive) return
    waitForRoom()
    listenAgain(listen)
  }

  /** Some time later, there may be room although no listen of this client has ended. */
  function waitForRoom(): void {
    heldTimer(takeUp, options.maxMs)
  }

  return {
    down() {
      downCount++
      replays.current = undefined
      held.clear()
      heldTimer()
    },
    join(listen, subscription) {
      // A listen without meta goes on with it.
      const needsMeta = subscription.options.meta && !hasMeta(listen, subscription)
      if (isLive(subscription.start) && !needsMeta && !isMixed(listen)) {
        const active = listen.all.find(isActive)
        if (active) {
          const { position } = active
          subscription.advance(position)
          subscription.accept({ recovered: false, replayed: 0, position }, true, latest())
          return
        }
        if (listen.pending) {
          listen.pending.push(subscription)
          return
        }
      }
      ask(listen, [subscription])
    },
    listen: listenAgain,
    ask,
    forget(listen) {
      listen.timer()
      held.delete(listen)
    },
    async unlisten(pattern) {
      await new Promise((resolve) => requests.send((id) => encodeUnlisten(id, pattern), resolve))
      takeUp()
    },
  }
}
