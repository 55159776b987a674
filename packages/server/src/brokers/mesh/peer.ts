import { FRAME } from './frames.js'
import type { Link } from './link.js'
import { Outbox } from './outbox.js'
import type { PeerInterest } from './peer-interest.js'
import type { PeerLog } from './peer-log.js'
import type { Receipt } from './receipt.js'

/** More patterns than this end the link: a node with so many listeners is none of ours. */
const MAX_PATTERNS = 1_000_000

/** A receipt that waits for this peer. */
interface Pending {
  readonly receipt: Receipt
  /** Of the last frame that it waits for. */
  sequence: number
  bytes: number
}

/**
 * Another node, as long as the streams to and from it go on, over as many links as that takes: what it listens to, what it has
 * still to take in, and how much came from it.
 */
export class Peer {
  readonly node: string
  /** Names the streams; see {@link Start.relation}. */
  readonly relation: string
  /** Interval of its heartbeats. */
  readonly heartbeatMs: number
  readonly outbox = new Outbox()
  readonly #interest: PeerInterest<Peer>
  /** The link that carries the streams; `undefined` while there is none. */
  link: Link | undefined
  /** What becomes of its log and ours; `undefined` without history, or when it logs other keys. */
  history: PeerLog | undefined
  /** When the last link was lost. */
  lostAtMs = 0
  /** Of the last link; see {@link Start.generation}. */
  generation = 0
  /** Counted frames that have come. */
  receivedSequence = 0
  /** Whether it takes part in the turn that is not over yet. */
  isDirty = false
  #patterns = new Set<string>()
  #isReady = false
  #isLive = false
  readonly #pending: Pending[] = []
  #pendingBytes = 0

  constructor(node: string, relation: string, heartbeatMs: number, interest: PeerInterest<Peer>) {
    this.node = node
    this.relation = relation
    this.heartbeatMs = heartbeatMs
    this.#interest = interest
  }

  /** Both nodes know what the other one listens to, and have caught up with its messages. */
  get isSettled(): boolean {
    const { history } = this
    return this.#isReady && this.#isLive && (history === undefined || (history.isLive && history.isFed))
  }

  /** Bytes of messages that it has not taken in. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** Since when something waits for it; `undefined` when nothing does. */
  get pendingSinceMs(): number | undefined {
    return this.#pending[0]?.receipt.sinceMs
  }

  /** Tells it, first of all, what this node listens to. */
  introduce(patterns: Iterable<string>): void {
    for (const pattern of patterns) this.outbox.add(FRAME.add, Buffer.from(pattern))
    this.outbox.add(FRAME.ready, new Uint8Array(0))
  }

  /** Tells it that this node listens with a pattern, or no longer does. */
  tell(pattern: string, isAdded: boolean): void {
    this.outbox.add(isAdded ? FRAME.add : FRAME.remove, Buffer.from(pattern))
  }

  /** The receipt waits for all that was added to the outbox. */
  expect(receipt: Receipt, bytes: number): void {
    const last = this.#pending[this.#pending.length - 1]
    this.#pendingBytes += bytes
    if (last?.receipt === receipt) {
      last.sequence = this.outbox.lastSequence
      last.bytes += bytes
      return
    }
    receipt.waitingCount++
    this.#pending.push({ receipt, sequence: this.outbox.lastSequence, bytes })
  }

  /** It has taken in all frames up to this one. Returns whether there are so many. */
  acked(sequence: number): boolean {
    if (!this.outbox.acked(sequence)) return false
    for (
      let pending = this.#pending[0];
      pending !== undefined && pending.sequence <= sequence;
      pending = this.#pending[0]
    )
      this.#answer()
    return true
  }

  /** It listens with a pattern. Returns whether that is still within bounds. */
  add(pattern: string): boolean {
    if (this.#patterns.has(pattern)) return true
    if (this.#patterns.size >= MAX_PATTERNS) return false
    this.#patterns.add(pattern)
    if (this.#isReady) this.#interest.add(pattern, this)
    return true
  }

  remove(pattern: string): void {
    if (this.#patterns.delete(pattern) && this.#isReady) this.#interest.remove(pattern, this)
  }

  /** It has told all that it listens to: from now on it is sent what matches, and told whether something was accepted before. */
  ready(mayHaveMissed: boolean): void {
    if (this.#isReady) return
    this.#isReady = true
    for (const pattern of this.#patterns) this.#interest.add(pattern, this)
    this.outbox.add(FRAME.live, Uint8Array.of(mayHaveMissed ? 1 : 0))
  }

  /** It knows what this node listens to. */
  live(): void {
    this.#isLive = true
  }

  /** The streams end here: nothing is sent to it any more, and nobody waits for it. */
  end(): void {
    if (this.#isReady) for (const pattern of this.#patterns) this.#interest.remove(pattern, this)
    this.#patterns = new Set()
    this.#isReady = false
    while (this.#pending.length > 0) this.#answer()
  }

  #answer(): void {
    const pending = this.#pending.shift()
    if (pending === undefined) return
    this.#pendingBytes -= pending.bytes
    pending.receipt.answered()
  }
}
