import { FRAME } from './frames.js'
import type { Hello } from './handshake.js'
import type { Link } from './link.js'
import { Outbox } from './outbox.js'
import type { PeerInterest } from './peer-interest.js'
import type { AckGroup } from './send-batch.js'

/** More patterns end the link: no real node has so many. */
const MAX_PATTERNS = 1_000_000
/** Checks of the oldest unacknowledged frame per timeout. */
export const LOOKS_PER_TIMEOUT = 4

interface Pending {
  readonly group: AckGroup
  /** Sequence of the last frame it waits for. */
  sequence: number
  bytes: number
}

/**
 * Another node, as long as the streams to and from it last, over any number of links. It knows the
 * peer's patterns, the unacknowledged frames, and the number of received frames.
 */
export class Peer {
  readonly nodeId: string
  readonly listenPort: number
  readonly streamId: string
  readonly outbox = new Outbox()
  readonly #interest: PeerInterest<Peer>
  link: Link | undefined
  /** Runs while there is no link; then the peer is given up. */
  relinkTimer: NodeJS.Timeout | undefined
  /** Generation of the last link; see {@link Start.generation}. */
  generation = 0
  receivedSequence = 0
  /** Whether it has frames to send at the end of this turn. */
  isDirty = false
  #patterns = new Set<string>()
  /** The patterns of the peer are known: it is sent matching messages. */
  isReady = false
  /** The peer knows the patterns of this node. */
  isLive = false
  readonly #pending: Pending[] = []
  pendingBytes = 0
  #oldestGroup: AckGroup | undefined
  #looksAtOldest = 0

  constructor({ nodeId, listenPort }: Hello, streamId: string, interest: PeerInterest<Peer>) {
    this.nodeId = nodeId
    this.listenPort = listenPort
    this.streamId = streamId
    this.#interest = interest
  }

  /** Each node knows the other's patterns. */
  get isSettled(): boolean {
    return this.isReady && this.isLive
  }

  /**
   * Whether one frame was the oldest unacknowledged one for a whole timeout. Call it {@link LOOKS_PER_TIMEOUT} times
   * per timeout. It counts looks, not time: after a long pause of this node, acknowledgements may be waiting to be
   * read.
   */
  isOverdue(): boolean {
    const oldest = this.#pending[0]?.group
    const isSame = oldest !== undefined && oldest === this.#oldestGroup
    this.#oldestGroup = oldest
    this.#looksAtOldest = isSame ? this.#looksAtOldest + 1 : 0
    return this.#looksAtOldest >= LOOKS_PER_TIMEOUT
  }

  /** Sends the patterns of this node, before any message. */
  introduce(patterns: Iterable<string>): void {
    for (const pattern of patterns) this.outbox.add(FRAME.add, Buffer.from(pattern))
    this.outbox.add(FRAME.ready, new Uint8Array(0))
  }

  /** Tells the peer that this node wants messages of a pattern, or no longer does. */
  tell(pattern: string, isAdded: boolean): void {
    this.outbox.add(isAdded ? FRAME.add : FRAME.remove, Buffer.from(pattern))
  }

  /** The group waits until the peer has acknowledged everything that is in the outbox now. */
  expect(group: AckGroup, bytes: number): void {
    const last = this.#pending[this.#pending.length - 1]
    this.pendingBytes += bytes
    if (last?.group === group) {
      last.sequence = this.outbox.lastSequence
      last.bytes += bytes
      return
    }
    group.waitingCount++
    this.#pending.push({ group, sequence: this.outbox.lastSequence, bytes })
  }

  /** The peer acknowledges all frames up to this one. Returns `false` if it was never sent. */
  acked(sequence: number): boolean {
    if (!this.outbox.acked(sequence)) return false
    while ((this.#pending[0]?.sequence ?? Number.POSITIVE_INFINITY) <= sequence) this.#answer()
    return true
  }

  /** The peer wants messages of a pattern. Returns `false` if it has too many patterns. */
  add(pattern: string): boolean {
    if (this.#patterns.has(pattern)) return true
    if (this.#patterns.size >= MAX_PATTERNS) return false
    this.#patterns.add(pattern)
    if (this.isReady) this.#interest.add(pattern, this)
    return true
  }

  remove(pattern: string): void {
    if (this.#patterns.delete(pattern) && this.isReady) this.#interest.remove(pattern, this)
  }

  /**
   * The peer has sent all its patterns: from now on it gets matching messages. It is told whether it may have missed
   * some.
   */
  ready(mayHaveMissed: boolean): void {
    if (this.isReady) return
    this.isReady = true
    for (const pattern of this.#patterns) this.#interest.add(pattern, this)
    this.outbox.add(FRAME.live, Uint8Array.of(mayHaveMissed ? 1 : 0))
  }

  /** The streams end: nothing more is sent, and pending groups no longer wait for the peer. */
  end(): void {
    if (this.isReady) for (const pattern of this.#patterns) this.#interest.remove(pattern, this)
    this.#patterns = new Set()
    this.isReady = false
    while (this.#pending.length > 0) this.#answer()
  }

  #answer(): void {
    const pending = this.#pending.shift()
    if (pending === undefined) return
    this.pendingBytes -= pending.bytes
    pending.group.answered()
  }
}
