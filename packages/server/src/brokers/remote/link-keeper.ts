import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import { fullJitterMs } from './backoff.js'
import { limitedSignal } from './limited-signal.js'
import type { Link, LinkEvents } from './link.js'

/** What a {@link LinkKeeper} works with. */
export interface LinkKeeperContext {
  readonly connect: (events: LinkEvents, signal: AbortSignal) => Promise<Link>
  /** What becomes of what a link tells; `isCurrent` turns false when the link is lost or closed. */
  readonly events: (isCurrent: () => boolean) => Omit<LinkEvents, 'lost'>
  /** Makes a new link ready; when it rejects, the link is given up. */
  readonly prepare: (link: Link, isFirst: boolean) => Promise<void>
  /** The link is ready. */
  readonly established: (link: Link) => void
  /** A link is lost, established or not. */
  readonly lost: (cause: Error) => void
  /** A try has failed, and its link if there was one is closed; there will be another. */
  readonly failed: (cause: Error) => void
  readonly random?: () => number
}

/** A try to connect and to bring all bindings live ends after this. */
const MAX_ATTEMPT_MS = 30_000
const BACKOFF = { baseMs: 100, maxMs: 5_000 }
/** A link that lives shorter than this counts as a try that failed, so that one that is cut at once is not made again at once. */
const MIN_LIFE_MS = 1_000

/** Keeps one link at a time, and gets another when it is lost, until stopped. */
export class LinkKeeper {
  readonly #context: LinkKeeperContext
  readonly #stopping = new AbortController()
  #failedCount = 0
  #isFirst = true
  #running: Promise<void> | undefined
  readonly #stopped = aborted(this.#stopping.signal)

  constructor(context: LinkKeeperContext) {
    this.#context = context
  }

  /**
   * Resolves when the first link is established.
   * @throws `E_BROKER_REFUSED` at once, and the last failure after `timeoutMs`; it is then to be stopped.
   */
  async start(timeoutMs: number): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs
    while (!this.#signal.aborted) {
      const leftMs = deadlineMs - performance.now()
      try {
        const life = await this.#establish(Math.max(1, leftMs))
        this.#running = this.#keep(life)
        return
      } catch (cause) {
        const error = asError(cause)
        if (error instanceof WebMQError && error.code === 'E_BROKER_REFUSED') throw error
        const waitMs = this.#nextWaitMs()
        if (performance.now() + waitMs >= deadlineMs) throw error
        this.#context.failed(error)
        await this.#sleep(waitMs)
      }
    }
    throw new Error('stopped')
  }

  /** Closes the link, and gets no other. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  get #signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** From one link to the next. */
  async #keep(first: LinkLife): Promise<void> {
    let life: LinkLife | undefined = first
    while (life !== undefined) {
      const cause = await Promise.race([life.lost, this.#stopped])
      await life.close()
      if (cause === undefined) return
      if (performance.now() - life.sinceMs >= MIN_LIFE_MS) this.#failedCount = 0
      life = await this.#next()
    }
  }

  async #next(): Promise<LinkLife | undefined> {
    while (!this.#signal.aborted) {
      await this.#sleep(this.#nextWaitMs())
      if (this.#signal.aborted) break
      try {
        return await this.#establish(MAX_ATTEMPT_MS)
      } catch (cause) {
        if (!this.#signal.aborted) this.#context.failed(asError(cause))
      }
    }
    return undefined
  }

  async #establish(limitMs: number): Promise<LinkLife> {
    const { signal, release } = limitedSignal(this.#signal, Math.min(limitMs, MAX_ATTEMPT_MS))
    const life = new LinkLife(this.#context.lost)
    const events = { ...this.#context.events(() => life.isCurrent), lost: (cause: Error) => life.lose(cause) }
    const tooLate = aborted(signal).then(() => {
      throw this.#signal.aborted ? new Error('stopped') : new Error('no connection in time')
    })
    tooLate.catch(() => undefined)
    const connecting = this.#context.connect(events, signal).then((link) => life.begin(link))
    try {
      const link = await Promise.race([connecting, tooLate])
      const isFirst = this.#isFirst
      this.#isFirst = false
      const failed = life.lost.then((cause) => {
        throw cause
      })
      failed.catch(() => undefined)
      await Promise.race([this.#context.prepare(link, isFirst), failed, tooLate])
      life.sinceMs = performance.now()
      this.#context.established(link)
    } catch (error) {
      // A connection that comes too late is closed too.
      connecting.catch(() => undefined)
      await life.close()
      throw error
    } finally {
      release()
    }
    return life
  }

  #nextWaitMs(): number {
    this.#failedCount++
    const { random } = this.#context
    return fullJitterMs(this.#failedCount, random === undefined ? BACKOFF : { ...BACKOFF, random })
  }

  async #sleep(ms: number): Promise<void> {
    // Ends early when stopped; whoever sleeps looks.
    await sleep(ms, undefined, { signal: this.#signal }).catch(() => undefined)
  }
}

/** One link, from before it is there to its end. */
class LinkLife {
  sinceMs = performance.now()
  readonly lost: Promise<Error>
  #tellLost: (cause: Error) => void = () => undefined
  #link: Link | undefined
  #isCurrent = true
  readonly #onLost: (cause: Error) => void

  /** @param onLost Called at once when the link is lost. */
  constructor(onLost: (cause: Error) => void) {
    this.#onLost = onLost
    this.lost = new Promise((resolve) => {
      this.#tellLost = resolve
    })
  }

  get isCurrent(): boolean {
    return this.#isCurrent
  }

  begin(link: Link): Link {
    this.#link = link
    if (!this.#isCurrent) void link.close()
    return link
  }

  lose(cause: Error): void {
    if (this.#isCurrent && this.#link !== undefined) this.#onLost(cause)
    this.#isCurrent = false
    this.#tellLost(cause)
  }

  async close(): Promise<void> {
    this.#isCurrent = false
    await this.#link?.close()
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}
