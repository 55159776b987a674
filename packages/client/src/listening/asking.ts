import { backoffMs } from '../connection/backoff.js'
import type { Sender } from '../connection/sender.js'
import { encodeListen, encodeUnlisten } from '../protocol/encode-client.js'
import { WebMQError } from '../protocol/errors.js'
import type { GapReason, ServerMessage } from '../protocol/messages.js'
import { hasMeta, isActive, isLive, isMixed, type Listen } from './listen.js'
import type { Replays } from './replays.js'
import type { Requests, Start } from './requests.js'
import type { LiveSubscription, SubscriptionContext } from './subscription.js'

/** The connection that asks, and the registry that gets the answers. */
export interface AskingContext extends Pick<SubscriptionContext, 'options' | 'onError' | 'onGap'> {
  readonly sender: Sender
  readonly requests: Requests
  readonly replays: Replays
  /** Position of the last live message. */
  latest(): string | undefined
  /** Positions have moved. */
  touch(): void
  /** The server has ended these subscriptions. */
  end(pattern: string, subscriptions: readonly LiveSubscription[], error: WebMQError): void
}

/** Asks the server for listens: the answers, the pages of replays, and what is tried again later. */
export class Asking {
  readonly #context: AskingContext
  /** Listens for which the server has no room, in the order in which they are tried again. */
  readonly #held = new Set<Listen>()
  #heldTimer: ReturnType<typeof setTimeout> | undefined
  #downCount = 0

  constructor(context: AskingContext) {
    this.#context = context
  }

  /** The connection is lost. */
  down(): void {
    this.#downCount++
    this.#context.replays.current = undefined
    this.#held.clear()
    clearTimeout(this.#heldTimer)
  }

  /** Joins an existing listen if the subscription needs no replay; otherwise sends a listen of its own. */
  join(listen: Listen, subscription: LiveSubscription): void {
    // A listen without meta goes on with it.
    const needsMeta = subscription.options.meta && !hasMeta(listen, subscription)
    if (isLive(subscription.start) && !needsMeta && !isMixed(listen)) {
      const active = listen.subscriptions.find(isActive)
      if (active) {
        const { position } = active.resume
        subscription.resume.advance(position)
        subscription.accept({ recovered: false, replayed: 0, position }, true, this.#context.latest())
        return
      }
      if (listen.joinable) {
        listen.joinable.push(subscription)
        return
      }
    }
    this.ask(listen, [subscription])
  }

  /** Sends a listen for all pending subscriptions; those with the same start share one. */
  listen(listen: Listen): void {
    const groups = new Map<string, LiveSubscription[]>()
    for (const subscription of listen.subscriptions) {
      if (subscription.state !== 'pending') continue
      const start = JSON.stringify(subscription.start)
      groups.set(start, [...(groups.get(start) ?? []), subscription])
    }
    for (const targets of groups.values()) this.ask(listen, targets)
  }

  /** Sends a listen for these subscriptions, which begin at the same place. */
  ask(listen: Listen, targets: LiveSubscription[]): void {
    const { pattern } = listen
    const start = targets[0]?.start ?? {}
    const overflow = isMixed(listen) ? 'disconnect' : listen.subscriptions[0]?.options.overflow
    if (isLive(start)) listen.joinable = targets
    this.#context.requests.send(
      (id) => encodeListen({ id, pattern, ...start, overflow, meta: hasMeta(listen) || undefined }),
      (answer) => {
        if (listen.joinable === targets) listen.joinable = undefined
        if (answer instanceof WebMQError) this.#refused(listen, targets, answer)
        else this.#accepted(listen, targets, start, answer)
      },
    )
  }

  /** The last subscription of the listen has ended. It is tried no more. */
  forget(listen: Listen): void {
    clearTimeout(listen.timer)
    this.#held.delete(listen)
  }

  /** Ends the listen on the server, which then has room for another one. */
  async unlisten(pattern: string): Promise<void> {
    await new Promise((resolve) => this.#context.requests.send((id) => encodeUnlisten(id, pattern), resolve))
    this.#takeUp()
  }

  #accepted(
    listen: Listen,
    targets: readonly LiveSubscription[],
    { since, state }: Start,
    ok: Extract<ServerMessage, { verb: 'ok' }>,
  ): void {
    const { pattern } = listen
    if (state && !ok.state) {
      // It ignores the option, and would give no state.
      this.#context.end(pattern, targets, new WebMQError('E_UNSUPPORTED', { detail: 'state topics' }))
      return
    }
    const { recovered = false, replayed = 0, position, gap, more } = ok
    const isIdle = more && !replayed
    if (!isIdle) listen.failedAttempts = 0
    if (this.#held.delete(listen)) this.#takeUp()
    let reported: GapReason | undefined
    for (const subscription of targets) {
      if (subscription.state !== 'pending') continue
      // Without `recovered` and without a gap, the messages in between count as lost.
      const isResuming = since !== undefined || (subscription.recovers && subscription.resume.wasLive)
      const reason = gap ?? (isResuming && !recovered ? 'no-history' : undefined)
      reported ??= reason
      subscription.accept({ recovered, replayed, position, gap: reason }, !more, this.#context.latest(), since)
    }
    if (reported) this.#context.onGap({ pattern, reason: reported, since })
    this.#context.replays.expect(ok, targets, () => {
      for (const { resume } of targets) resume.advance(position)
      this.#context.touch()
      // A page that brings nothing costs its server nothing, and it may say `more` for ever.
      if (isIdle) this.#askLater(listen)
      else if (more) this.#turnPage(listen, targets)
      else for (const target of targets) target.caughtUp()
    })
  }

  /**
   * Requests the next page of a replay: at once for subscriptions that have read this one, for each other once it has.
   * So the reader sets the pace of its replay [P-6.9], and a slow reader delays nobody else.
   */
  #turnPage(listen: Listen, targets: readonly LiveSubscription[]): void {
    const downCount = this.#downCount
    const ask = (readers: readonly LiveSubscription[]) => {
      const open = readers.filter(({ state }) => state === 'pending')
      if (open.length > 0 && this.#downCount === downCount) this.ask(listen, open)
    }
    ask(
      targets.filter(
        (subscription) =>
          !subscription.receiver
            .backlog?.()
            ?.whenHandled()
            .then(() => ask([subscription])),
      ),
    )
  }

  #refused(listen: Listen, targets: LiveSubscription[], error: WebMQError): void {
    const { pattern } = listen
    if (error.retryable) {
      this.#askLater(listen)
    } else if (error.code === 'E_LISTEN_LIMIT') {
      // The app has ended it meanwhile.
      if (!listen.subscriptions.length) return
      // At the end of the queue, because another one may fit.
      this.#held.delete(listen)
      this.#held.add(listen)
      for (const subscription of targets) if (subscription.hold(error)) this.#context.onError({ error, pattern })
      this.#waitForRoom()
    } else if (error.code === 'E_POSITION_INVALID' && targets.some(({ resume }) => resume.position)) {
      // The broker was replaced and cannot read positions of the previous one: continue, with a gap.
      for (const { resume } of targets) resume.lose()
      this.ask(listen, targets)
    } else this.#context.end(pattern, targets, error)
  }

  #askLater(listen: Listen): void {
    if (!this.#context.sender.isLive) return
    clearTimeout(listen.timer)
    listen.timer = setTimeout(() => this.listen(listen), backoffMs(listen.failedAttempts++, this.#context.options))
  }

  /** There may be room: tries the listen that has waited longest for it. */
  #takeUp(): void {
    const [listen] = this.#held
    if (!listen || !this.#context.sender.isLive) return
    this.#waitForRoom()
    this.listen(listen)
  }

  /** Some time later, there may be room although no listen of this client has ended. */
  #waitForRoom(): void {
    clearTimeout(this.#heldTimer)
    this.#heldTimer = setTimeout(() => this.#takeUp(), this.#context.options.maxMs)
  }
}
