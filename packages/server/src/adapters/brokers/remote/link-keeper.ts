import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import { deferred } from '../../../kernel/base/deferred.js'
import { limitedSignal } from '../../../kernel/base/limited-signal.js'
import { within } from '../../../kernel/base/within.js'
import { BROKER_BACKOFF, fullJitterMs } from './backoff.js'
import type { Link, LinkEvents } from './link.js'

/** Limit for one attempt to connect and to bring all bindings live. */
const MAX_ATTEMPT_MS = 30_000
/** A link that lasts shorter than this counts as a failed attempt, so the backoff keeps growing. */
const MIN_UPTIME_MS = 1_000

/** What becomes of each link. */
export interface LinkOwner {
  /** Handles the events of one link; `isCurrent` turns false when it is lost or closed. */
  linkEvents(isCurrent: () => boolean): Omit<LinkEvents, 'lost'>
  connect(events: LinkEvents, signal: AbortSignal): Promise<Link>
  /** Makes a new link ready; when it rejects, the link is given up. */
  prepare(link: Link, isFirst: boolean): Promise<void>
  established(link: Link): void
  /** There is no link: it is lost, established or not, or an attempt has failed. */
  lost(cause: Error): void
}

/** Keeps one link at a time and replaces a lost one, until stopped. */
export class LinkKeeper {
  readonly #owner: LinkOwner
  readonly #stopping = new AbortController()
  readonly #signal = this.#stopping.signal
  #failedCount = 0
  #isFirst = true
  /** Why attempts failed that had their time. */
  #failure: Error | undefined
  /** The current link, or the last one. */
  #managed: ManagedLink | undefined
  #running: Promise<void> | undefined
  readonly #stopped = aborted(this.#signal)

  constructor(owner: LinkOwner) {
    this.#owner = owner
  }

  /**
   * Resolves when the first link is established.
   * @throws `E_BROKER_REFUSED` at once, or the last failure after `timeoutMs`. Call `stop` then.
   */
  async start(timeoutMs: number): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs
    const isRefused = (error: Error) => error instanceof WebMQError && error.code === 'E_BROKER_REFUSED'
    await this.#connect(
      () => deadlineMs - performance.now(),
      (error, waitMs) => isRefused(error) || performance.now() + waitMs >= deadlineMs,
    )
    this.#running = this.#keep()
  }

  /** Ends the current link, if there is one, as if it was lost: another one follows. */
  replace(cause: unknown): void {
    this.#managed?.lose(asError(cause))
  }

  /** Makes no more links, and ends the last one: in order within the limit, else by force. */
  async stop(limitMs: number): Promise<void> {
    const managed = this.#managed
    this.#stopping.abort()
    if (managed?.isCurrent === true) await within(managed.close(), limitMs)
    managed?.destroy()
    await this.#running
  }

  /** Runs until stopped: waits for the loss of a link, then makes the next. */
  async #keep(): Promise<void> {
    while (this.#managed !== undefined && !this.#signal.aborted) {
      const managed = this.#managed
      const cause = await Promise.race([managed.lost.promise, this.#stopped])
      if (cause === undefined) return
      managed.destroy()
      if (performance.now() - managed.sinceMs >= MIN_UPTIME_MS) this.#failedCount = 0
      await this.#sleep(this.#nextWaitMs())
      // It fails when it is stopped.
      await this.#connect().catch(() => undefined)
    }
  }

  /**
   * Tries until a link is established.
   * @throws a failure that is the last, and when stopped.
   */
  async #connect(limitMs = () => MAX_ATTEMPT_MS, isLast = (_error: Error, _waitMs: number) => false): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        return await this.#establish(Math.max(1, limitMs()))
      } catch (cause) {
        const error = asError(cause)
        const waitMs = this.#nextWaitMs()
        if (isLast(error, waitMs)) throw error
        if (!this.#signal.aborted) this.#owner.lost(error)
        await this.#sleep(waitMs)
      }
    }
    throw new Error('stopped')
  }

  async #establish(limitMs: number): Promise<void> {
    using limited = limitedSignal(this.#signal, Math.min(limitMs, MAX_ATTEMPT_MS))
    const { signal } = limited
    const managed = new ManagedLink((cause) => this.#owner.lost(cause))
    const tooLate = aborted(signal).then(() => {
      throw this.#signal.aborted ? new Error('stopped') : tooLateError(this.#failure)
    })
    tooLate.catch(() => undefined)
    // Also while the driver still opens it: what it has asked is never answered.
    const failed = managed.lost.promise.then((cause) => {
      throw cause
    })
    failed.catch(() => undefined)
    const events = { ...this.#owner.linkEvents(() => managed.isCurrent), lost: (cause: Error) => managed.lose(cause) }
    const connecting = this.#owner.connect(events, signal).then((link) => managed.begin(link))
    try {
      const link = await Promise.race([connecting, failed, tooLate])
      const isFirst = this.#isFirst
      this.#isFirst = false
      await Promise.race([this.#owner.prepare(link, isFirst), failed, tooLate])
      // In the same turn: who ended it has not seen this link.
      if (signal.aborted || !managed.isCurrent) throw new Error('ended when it was made')
      managed.sinceMs = performance.now()
      this.#managed = managed
      this.#failure = undefined
      this.#owner.established(link)
    } catch (error) {
      if (!signal.aborted) this.#failure = asError(error)
      // `managed.begin` ends a link that comes too late.
      connecting.catch(() => undefined)
      limited.abort(error)
      managed.destroy()
      throw error
    }
  }

  #nextWaitMs(): number {
    return fullJitterMs(++this.#failedCount, BROKER_BACKOFF)
  }

  async #sleep(ms: number): Promise<void> {
    // Ends early when stopped; the caller checks.
    await sleep(ms, undefined, { signal: this.#signal }).catch(() => undefined)
  }
}

/** One link, from the attempt to connect until its end. */
class ManagedLink {
  sinceMs = performance.now()
  readonly lost = deferred<Error>()
  isCurrent = true
  #link: Link | undefined
  readonly #onLost: (cause: Error) => void

  /** @param onLost Called at once when the link is lost. */
  constructor(onLost: (cause: Error) => void) {
    this.#onLost = onLost
  }

  begin(link: Link): Link {
    this.#link = link
    if (!this.isCurrent) link.destroy()
    return link
  }

  lose(cause: Error): void {
    if (this.isCurrent && this.#link !== undefined) this.#onLost(cause)
    this.isCurrent = false
    this.lost.resolve(cause)
  }

  async close(): Promise<void> {
    this.isCurrent = false
    await this.#link?.close()
  }

  destroy(): void {
    this.isCurrent = false
    this.#link?.destroy()
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => addAbortListener(signal, () => resolve(undefined)))
}

function tooLateError(before: Error | undefined): Error {
  const text = 'no connection in time'
  return before === undefined
    ? new Error(text)
    : new Error(`${text}; the attempt before: ${before.message}`, { cause: before })
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}
