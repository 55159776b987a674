import { type Deferred, deferred } from '../../../kernel/base/deferred.js'
import { within } from '../../../kernel/base/within.js'
import type { Accepted } from '../../../kernel/ports/broker.js'
import type { Peer } from './peer.js'

/** The answer to a publish that is not logged. */
export const ACCEPTED: Accepted = Object.freeze({ isDuplicate: false })

/**
 * One answer for all calls of a turn that went to the same nodes. It resolves when each of these nodes has acknowledged
 * all calls, or was given up. One promise per turn is much cheaper than one per message.
 */
export class AckGroup {
  readonly answer = deferred<Accepted>()
  waitingCount = 0
  messageCount = 0
  messageBytes = 0
  #isOpen = true
  #isSettled = false
  readonly #onSettled: (group: AckGroup, isAccepted: boolean) => void

  /** @param onSettled Called before the promise resolves. */
  constructor(onSettled: (group: AckGroup, isAccepted: boolean) => void) {
    this.#onSettled = onSettled
  }

  close(): void {
    this.#isOpen = false
    this.#settle()
  }

  answered(): void {
    this.waitingCount--
    this.#settle()
  }

  fail(error: Error): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#onSettled(this, false)
    this.answer.reject(error)
  }

  #settle(): void {
    if (this.#isOpen || this.waitingCount > 0 || this.#isSettled) return
    this.#isSettled = true
    this.#onSettled(this, true)
    this.answer.resolve(ACCEPTED)
  }
}

/**
 * Sends the messages and pattern changes of a turn together, at its end, and answers them together. Counts messages.
 */
export class SendBatch {
  /** Messages that all their nodes have acknowledged. */
  acceptedCount = 0
  /** Messages that were rejected because this node stopped. */
  rejectedCount = 0
  pendingCount = 0
  pendingBytes = 0
  /** The latest publishes, all to `#peers`. */
  #group: AckGroup | undefined
  #peers: readonly Peer[] | undefined
  /** Pattern changes of this turn. */
  #telling: AckGroup | undefined
  readonly #unsettled = new Set<AckGroup>()
  #dirty: Peer[] = []
  #immediate: NodeJS.Immediate | undefined
  #drained: Deferred<void> | undefined

  /** A message was added to the outboxes of these peers. Resolves when each has acknowledged it, or was given up. */
  published(peers: readonly Peer[], byteCount: number): Promise<Accepted> {
    const group = this.#group !== undefined && peers === this.#peers ? this.#group : this.#begin(peers)
    group.messageCount++
    group.messageBytes += byteCount
    this.pendingCount++
    this.pendingBytes += byteCount
    for (const peer of peers) {
      peer.expect(group, byteCount)
      if (!peer.isDirty) this.add(peer)
      if (peer.outbox.isFull) peer.link?.flush()
    }
    return group.answer.promise
  }

  /** A pattern change was added to the outboxes of these peers. Resolves as {@link published}. */
  async told(peers: readonly Peer[]): Promise<void> {
    this.#telling ??= this.#open()
    for (const peer of peers) {
      peer.expect(this.#telling, 0)
      this.add(peer)
    }
    await this.#telling.answer.promise
  }

  add(peer: Peer): void {
    if (peer.isDirty) return
    peer.isDirty = true
    this.#dirty.push(peer)
    this.#immediate ??= setImmediate(() => this.end())
  }

  end(): void {
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    this.#group?.close()
    this.#group = undefined
    this.#telling?.close()
    this.#telling = undefined
    const dirty = this.#dirty
    this.#dirty = []
    for (const peer of dirty) {
      peer.isDirty = false
      peer.link?.flush()
    }
  }

  async drained(timeoutMs: number): Promise<void> {
    if (this.#unsettled.size === 0) return
    this.#drained = deferred()
    await within(this.#drained.promise, timeoutMs)
  }

  /** Rejects pending messages. Pattern changes resolve when the streams end. */
  fail(error: Error): void {
    for (const group of [...this.#unsettled]) if (group.messageCount > 0) group.fail(error)
  }

  #begin(peers: readonly Peer[]): AckGroup {
    this.#group?.close()
    this.#peers = peers
    this.#group = this.#open()
    return this.#group
  }

  #open(): AckGroup {
    const group = new AckGroup((settled, isAccepted) => this.#settle(settled, isAccepted))
    this.#unsettled.add(group)
    return group
  }

  #settle(group: AckGroup, isAccepted: boolean): void {
    this.#unsettled.delete(group)
    const { messageCount, messageBytes } = group
    this.pendingCount -= messageCount
    this.pendingBytes -= messageBytes
    if (isAccepted) this.acceptedCount += messageCount
    else this.rejectedCount += messageCount
    if (this.#unsettled.size === 0) this.#drained?.resolve()
  }
}
