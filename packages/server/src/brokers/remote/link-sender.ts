import type { Accepted, OutboundMessage } from '../../ports/broker.js'
import type { Link, LinkMessage } from './link.js'
import type { PendingPublishes } from './pending-publishes.js'

/**
 * Sends pending publishes over the current link, in order. They wait while there is no link or the broker is blocked.
 */
export class LinkSender {
  readonly #pending: PendingPublishes
  /** `undefined` until its bindings are live and the log is complete. */
  #link: Link | undefined
  #isBlocked = false
  /** Sequence of the last message that a link has sent. */
  #sentSequence = 0

  constructor(pending: PendingPublishes) {
    this.#pending = pending
  }

  get hasLink(): boolean {
    return this.#link !== undefined
  }

  /** Whether the broker refuses messages for now. A link may report it before it is used. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  /** Sends one message, now or later. Resolves once the broker has accepted it. */
  send(outbound: OutboundMessage, isLogged: boolean): Promise<Accepted> {
    return this.#handOn(this.#pending.add(outbound, isLogged))
  }

  /** As {@link send}, for several messages of one key that are encoded as a bundle. */
  sendBundle(key: string, payload: Uint8Array, messageCount: number): Promise<Accepted> {
    return this.#handOn(this.#pending.addBundle(key, payload, messageCount))
  }

  /** Uses this link from now on. Messages that were not accepted are sent again first. */
  use(link: Link): void {
    this.#link = link
    if (!this.#isBlocked) this.#sendAfter(0)
  }

  /** The link is lost. */
  lose(): void {
    this.#link = undefined
    this.#isBlocked = false
  }

  /** The broker refuses messages for now, or takes them again. */
  block(isBlocked: boolean): void {
    this.#isBlocked = isBlocked
    if (!isBlocked) this.#sendAfter(this.#sentSequence)
  }

  #handOn({ message, accepted }: ReturnType<PendingPublishes['add']>): Promise<Accepted> {
    if (this.#link !== undefined && !this.#isBlocked) this.#give(this.#link, message)
    return accepted
  }

  #sendAfter(sequence: number): void {
    for (const message of [...this.#pending.messagesAfter(sequence)]) if (this.#link) this.#give(this.#link, message)
  }

  #give(link: Link, message: LinkMessage): void {
    this.#sentSequence = Math.max(this.#sentSequence, message.sequence)
    try {
      link.publish(message)
    } catch (cause) {
      // It must not throw. If it does, its bug costs this message alone.
      this.#pending.refuse(message.sequence, cause instanceof Error ? cause : new Error(String(cause)))
    }
  }
}
