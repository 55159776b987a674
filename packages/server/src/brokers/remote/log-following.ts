import { WebMQError } from 'webmq-client/protocol'
import { type Deferred, deferred } from '../../ports/deferred.js'
import { within } from '../../ports/within.js'
import type { Link } from './link.js'

/** What a {@link LogFollowing} works with. */
export interface LogFollowingContext {
  /** The node follows only when it is asked to. */
  readonly isOnDemand: boolean
  /** Time limit of {@link LogFollowing.follow}. */
  readonly timeoutMs: number
  /** Follows the log over a link, from where the node's copy ends. */
  readonly follow: (link: Link) => Promise<void>
  /** The node follows no more: its copy is dropped. */
  readonly ended: () => void
}

/** Decides whether a node follows its log: always, or on demand. Over all its links. */
export class LogFollowing {
  readonly #context: LogFollowingContext
  #isWanted: boolean
  /** The copy was complete since `follow`. */
  #isComplete = false
  /** Counts calls of `unfollow`: what began before one must not go on behind it. */
  #endCount = 0
  #link: Link | undefined
  /** The link publishes to the log. */
  #isOpen = false
  #isLinkFollowing = false
  /** The link that is on its way to what is wanted. */
  #moving: Link | undefined
  #complete: Deferred<void> | undefined

  constructor(context: LogFollowingContext) {
    this.#context = context
    this.#isWanted = !context.isOnDemand
  }

  /** Whether the node has a copy of the log. While there is no link, it may be behind. */
  get hasCopy(): boolean {
    return this.#isWanted && this.#isComplete
  }

  /** A new link is there. Resolves when it can be published to, and, if the node follows, when the copy is complete. */
  async prepare(link: Link): Promise<void> {
    this.#link = link
    this.#isOpen = false
    this.#isLinkFollowing = false
    await this.#move(link)
  }

  /** The link is lost. */
  lose(): void {
    this.#link = undefined
  }

  /**
   * Follows the log over this link and every further one. Resolves when the copy is complete.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` when it is not in time; the node goes on trying. `E_BROKER_REFUSED`,
   *   or `E_BROKER_UNAVAILABLE` with a cause: the broker has refused, and the node tries no more.
   */
  async follow(): Promise<void> {
    if (this.hasCopy) return
    this.#isWanted = true
    const complete = this.#complete ?? deferred()
    this.#complete = complete
    complete.promise.catch(() => undefined)
    if (this.#link !== undefined && this.#link !== this.#moving) void this.#moveLater(this.#link)
    if (!(await within(complete.promise, this.#context.timeoutMs)))
      throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: `no log within ${this.#context.timeoutMs} ms` })
  }

  /** Follows the log no more, and drops the copy. Does nothing unless the node follows on demand. */
  unfollow(): void {
    if (!this.#context.isOnDemand || !this.#isWanted) return
    this.#end(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the node does not follow its log any more' }))
  }

  /** The node stops. */
  stop(): void {
    this.#link = undefined
    this.#isComplete = false
    this.#settle(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the server stops' }))
  }

  #end(error: Error): void {
    this.#isWanted = false
    this.#isComplete = false
    this.#isLinkFollowing = false
    this.#endCount++
    this.#leave(this.#link)
    this.#settle(error)
  }

  #leave(link: Link | undefined): void {
    link?.unfollow?.()
    this.#context.ended()
  }

  /** On a link that is in use. If it fails without the link, the node follows no more. */
  async #moveLater(link: Link): Promise<void> {
    try {
      await this.#move(link)
    } catch (cause) {
      // If the link is lost, the next one tries again.
      if (this.#link === link) this.#end(asUnavailable(cause))
    }
  }

  /** Makes the link do what is wanted, also if that changes meanwhile. */
  async #move(link: Link): Promise<void> {
    this.#moving = link
    try {
      while (!this.#isDone()) {
        const isFollowing = this.#isWanted
        const endCount = this.#endCount
        await (isFollowing ? this.#context.follow(link) : link.openLog?.())
        if (this.#link !== link) return
        this.#isOpen = true
        if (!isFollowing) continue
        if (endCount === this.#endCount) this.#followed()
        // `unfollow` may have come before the link began.
        else this.#leave(link)
      }
    } finally {
      if (this.#moving === link) this.#moving = undefined
    }
  }

  #isDone(): boolean {
    return this.#isWanted ? this.#isLinkFollowing : this.#isOpen
  }

  #followed(): void {
    this.#isLinkFollowing = true
    this.#isComplete = true
    this.#settle()
  }

  #settle(error?: Error): void {
    if (error === undefined) this.#complete?.resolve()
    else this.#complete?.reject(error)
    this.#complete = undefined
  }
}

function asUnavailable(cause: unknown): WebMQError {
  if (cause instanceof WebMQError) return cause
  return new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'its log cannot be followed', cause })
}
