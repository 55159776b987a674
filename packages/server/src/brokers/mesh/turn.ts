import type { Accepted } from '../../ports/broker.js'
import type { Peer } from './peer.js'
import { Receipt } from './receipt.js'

/**
 * What happens in one turn of the event loop: what is published and told in it goes out together at its end, and is answered
 * together. Counts what became of messages.
 */
export class Turn {
  /** Messages that all peers have taken in which were to have them. */
  acceptedCount = 0
  /** Messages that were given up because this node stopped. */
  rejectedCount = 0
  pendingCount = 0
  pendingBytes = 0
  /** Of the last publishes, all to these peers. */
  #receipt: Receipt | undefined
  #peers: readonly Peer[] | undefined
  /** Of what peers were told. */
  #telling: Receipt | undefined
  readonly #unsettled = new Set<Receipt>()
  #dirty: Peer[] = []
  #immediate: NodeJS.Immediate | undefined
  #onDrained: () => void = () => undefined

  readonly #onEnd: () => void

  /** @param onEnd Adds to outboxes what is to be told of the turn. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  /** A message was added to the outboxes of these peers. Resolves when all of them have taken it in, or were given up. */
  published(peers: readonly Peer[], byteCount: number): Promise<Accepted> {
    const receipt = this.#receipt !== undefined && peers === this.#peers ? this.#receipt : this.#begin(peers)
    receipt.messageCount++
    receipt.messageBytes += byteCount
    this.pendingCount++
    this.pendingBytes += byteCount
    for (const peer of peers) {
      peer.expect(receipt, byteCount)
      if (!peer.isDirty) this.add(peer)
      if (peer.outbox.isFull) peer.link?.flush(receipt.sinceMs)
    }
    return receipt.promise
  }

  /** Something was told to these peers. Resolves as above. */
  async told(peers: readonly Peer[]): Promise<void> {
    this.#telling ??= this.#open()
    for (const peer of peers) {
      peer.expect(this.#telling, 0)
      this.add(peer)
    }
    await this.#telling.promise
  }

  /** The peer has something to send. */
  add(peer: Peer): void {
    if (peer.isDirty) return
    peer.isDirty = true
    this.#dirty.push(peer)
    this.wake()
  }

  /** There is something to do at the end of the turn. */
  wake(): void {
    this.#immediate ??= setImmediate(() => this.end())
  }

  /** Sends what there is, and begins the next turn. */
  end(): void {
    this.#onEnd()
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    this.#receipt?.close()
    this.#receipt = undefined
    this.#telling?.close()
    this.#telling = undefined
    const dirty = this.#dirty
    this.#dirty = []
    const nowMs = performance.now()
    for (const peer of dirty) {
      peer.isDirty = false
      peer.link?.flush(nowMs)
    }
  }

  /** Resolves when nothing waits for a peer any more, or the time is over. */
  drained(timeoutMs: number): Promise<void> {
    if (this.#unsettled.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#onDrained = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Gives the messages up that are pending; what peers are told is theirs to answer. */
  fail(error: Error): void {
    for (const receipt of [...this.#unsettled]) if (receipt.messageCount > 0) receipt.fail(error)
  }

  #begin(peers: readonly Peer[]): Receipt {
    this.#receipt?.close()
    this.#peers = peers
    this.#receipt = this.#open()
    return this.#receipt
  }

  #open(): Receipt {
    const receipt = new Receipt(performance.now(), (settled, isAccepted) => this.#settle(settled, isAccepted))
    this.#unsettled.add(receipt)
    return receipt
  }

  #settle(receipt: Receipt, isAccepted: boolean): void {
    this.#unsettled.delete(receipt)
    const { messageCount, messageBytes } = receipt
    this.pendingCount -= messageCount
    this.pendingBytes -= messageBytes
    if (isAccepted) this.acceptedCount += messageCount
    else this.rejectedCount += messageCount
    if (this.#unsettled.size === 0) this.#onDrained()
  }
}
