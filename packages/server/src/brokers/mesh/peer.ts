import type { AckGroup } from './ack-group.js'
import { FRAME } from './frames.js'
import type { Link } from './link.js'
import { Outbox } from './outbox.js'
import type { PeerInterest } from './peer-interest.js'

/** More patterns than this end the link: no node of ours has so many listeners. */
const MAX_PATTERNS = 1_000_000
/** Looks at the oldest unacknowledged frame within the time that the peer has for it. */
export const LOOKS_PER_TIMEOUT = 4

/** A group that waits for this peer. */
interface Pending {
  readonly group: AckGroup
  /** Of the last frame that it waits for. */
  sequence: number
  bytes: number
}

/**
 * Another node, for as long as the streams to and from it go on, over any number of links: what it wants, what it has
 * not acknowledged, and how much has come from it.
 */
export class Peer {
  readonly nodeId: string
  /** Names the streams; see {@link Start.streamId}. */
  readonly streamId: string
  readonly outbox = new Outbox()
  readonly #interest: PeerInterest<Peer>
  /** The link that carries the streams; `undefined` while there is none. */
  link: Link | undefined
  /** Gives the peer up; runs while there is no link. */
  relinkTimer: NodeJS.Timeout | undefined
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
  #oldestGroup: AckGroup | undefined
  #looksAtOldest = 0

  constructor(nodeId: string, streamId: string, interest: PeerInterest<Peer>) {
    this.nodeId = nodeId
    this.streamId = streamId
    this.#interest = interest
  }

  /** The patterns of the peer are known, and it is sent what matches them. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Both nodes know the patterns of the other one. */
  get isSettled(): boolean {
    return this.#isReady && this.#isLive
  }

  /** Bytes of messages that it has not acknowledged. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /**
   * Called {@link LOOKS_PER_TIMEOUT} times per timeout. Returns whether one frame was the oldest unacknowledged one for a timeout.
   * It counts looks, not time: a node that was busy for long has not read the acknowledgements yet.
   */
  isOverdue(): boolean {
    const oldest = this.#pending[0]?.group
    const isSame = oldest !== undefined && oldest === this.#oldestGroup
    this.#oldestGroup = oldest
    this.#looksAtOldest = isSame ? this.#looksAtOldest + 1 : 0
    return this.#looksAtOldest >= LOOKS_PER_TIMEOUT
  }

  /** Tells it, first of all, the patterns of this node. */
  introduce(patterns: Iterable<string>): void {
    for (const pattern of patterns) this.outbox.add(FRAME.add, Buffer.from(pattern))
    this.outbox.add(FRAME.ready, new Uint8Array(0))
  }

  /** Tells it that this node wants what matches a pattern, or no longer does. */
  tell(pattern: string, isAdded: boolean): void {
    this.outbox.add(isAdded ? FRAME.add : FRAME.remove, Buffer.from(pattern))
  }

  /** The group waits until the peer has acknowledged all that was added to the outbox. */
  expect(group: AckGroup, bytes: number): void {
    const last = this.#pending[this.#pending.length - 1]
    this.#pendingBytes += bytes
    if (last?.group === group) {
      last.sequence = this.outbox.lastSequence
      last.bytes += bytes
      return
    }
    group.waitingCount++
    this.#pending.push({ group, sequence: this.outbox.lastSequence, bytes })
  }

  /** It has acknowledged all frames up to this one. Returns whether there are so many. */
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

  /** It wants what matches a pattern. Returns whether that is still within bounds. */
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

  /** It has told all its patterns: from now on it is sent what matches, and told whether messages were accepted before. */
  ready(mayHaveMissed: boolean): void {
    if (this.#isReady) return
    this.#isReady = true
    for (const pattern of this.#patterns) this.#interest.add(pattern, this)
    this.outbox.add(FRAME.live, Uint8Array.of(mayHaveMissed ? 1 : 0))
  }

  /** It knows the patterns of this node. */
  live(): void {
    this.#isLive = true
  }

  /** The streams end: nothing more is sent to it, and nothing waits for it. */
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
    pending.group.answered()
  }
}
