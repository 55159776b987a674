import { type Deferred, deferred, type LogFollower, LogRestart } from 'webmq-server/brokers'
import type { Position } from 'webmq-server/ports'
import { type GenerationGuard, type LastSeen, type LogStart, WHO_VOUCHES } from './generation-guard.js'
import type { LogState, LogStream } from './log-stream.js'
import type { ConsumerSink, OrderedConsumer } from './ordered-consumer.js'
import { fingerprintOfStored, type StreamMessage } from './stream-message.js'

/** What a {@link LogFollow} makes of the stream. */
export interface FollowOwner {
  readonly consumer: OrderedConsumer
  /** Gets each message, in order. */
  deliver(message: StreamMessage, fingerprint: number, follower: LogFollower | undefined): void
  lose(cause: Error): void
}

/**
 * Follows the stream while its link is up. A hole in the log ends the link; the next one continues after the last
 * message.
 */
export class LogFollow implements ConsumerSink {
  readonly #stream: LogStream
  readonly #guard: GenerationGuard
  readonly #lastSeen: LastSeen
  readonly #owner: FollowOwner
  #follower: LogFollower | undefined
  #state: LogState | undefined
  /** Where following begins, until the follower is told. */
  #start: LogStart | undefined
  lastSequence = 0
  /** Everything that was logged before `follow` has arrived when this sequence has. */
  #targetSequence = 0
  #completion: Deferred<void> | undefined
  /** The stream is whole, as far as any node knows. */
  #isConfirmed = false
  /** What the stream had at the last comparison. */
  #comparedSequence = 0

  constructor(stream: LogStream, guard: GenerationGuard, lastSeen: LastSeen, owner: FollowOwner) {
    this.#stream = stream
    this.#guard = guard
    this.#lastSeen = lastSeen
    this.#owner = owner
  }

  /** Epoch of the messages; empty before `follow`. */
  get epoch(): string {
    return this.#state?.epoch ?? ''
  }

  async follow(position: Position | undefined, follower: LogFollower): Promise<void> {
    const { state, start } = await this.#guard.open(position)
    const isContinued = start.after !== undefined
    const isEmpty = state.firstSequence > state.lastSequence
    this.#follower = follower
    this.#state = state
    this.#start = start
    this.lastSequence = start.sequence
    this.#targetSequence = state.lastSequence
    if (isContinued && !start.isCompared) this.#begin(start.sequence)
    else if (!isContinued && isEmpty) this.#begin(state.lastSequence)
    const isAllThere = isEmpty || (isContinued && start.sequence >= state.lastSequence)
    if (!isAllThere) this.#completion = deferred()
    const completion = this.#completion?.promise
    const first = isContinued ? start.sequence + 1 : this.#stream.oldestRead(state)
    await Promise.all([this.#owner.consumer.start(first), completion])
    if (isContinued) await this.#guard.vouch()
    this.#isConfirmed = true
  }

  take(message: StreamMessage): void {
    const state = this.#state
    if (state === undefined) return
    const { sequence } = message
    const lastSeen = this.#lastSeen
    if (this.#start !== undefined) {
      if (this.#start.after === undefined) this.#begin(sequence - 1)
      else if (sequence === lastSeen.sequence) {
        if (lastSeen.is(message)) {
          this.#begin(sequence)
          this.#completeAt(message)
        } else this.#endGeneration(state)
        return
      }
    }
    if (sequence !== this.lastSequence + 1 && !isAllDeleted(state, this.lastSequence + 1, sequence)) {
      this.lose(`the stream has dropped messages after ${this.lastSequence} before they were sent`)
      return
    }
    this.lastSequence = sequence
    lastSeen.note(state.epoch, message)
    const fingerprint = fingerprintOfStored(message.time)
    this.#owner.deliver(message, fingerprint, this.#follower)
    this.#follower?.skipped(sequence, fingerprint)
    this.#completeAt(message)
  }

  /**
   * JetStream has sent everything.
   * @param upTo It says so of this sequence. A stream whose file is damaged stores messages, and passes them over.
   */
  idle(upTo = this.lastSequence): void {
    if (this.#state === undefined) return
    if (this.#start === undefined && upTo > this.lastSequence) this.#passOver(this.#state, upTo)
    if (this.#start?.after !== undefined) this.lose('the stream has dropped the message to continue from')
    else if (this.#start !== undefined) this.#begin(this.#targetSequence)
    this.#complete()
  }

  /**
   * As {@link check}, of a node that gets nothing. A cluster that has lost more than it can spare may keep another log on the
   * consumer's server than on the one that stores: it sends nothing more, as if there were nothing.
   */
  async compare(): Promise<void> {
    const lastSequence = this.#start === undefined ? await this.check() : undefined
    if (lastSequence === undefined) return
    if (this.lastSequence < this.#comparedSequence)
      this.lose(`JetStream does not send what the stream has up to ${this.#comparedSequence}`)
    this.#comparedSequence = lastSequence
  }

  /**
   * Sequence of the last message of the stream. Ends the link when it is no longer what its consumer sends; `undefined` when the
   * link has ended.
   */
  async check(): Promise<number | undefined> {
    const state = this.#state
    if (state === undefined) return undefined
    const sent = this.lastSequence
    const { epoch, lastSequence } = await this.#stream.state()
    if (this.#state !== state) return undefined
    if (epoch === state.epoch && lastSequence >= sent) return lastSequence
    this.lose('the stream is another one than its consumer sends')
    return undefined
  }

  #passOver(state: LogState, upTo: number): void {
    const isLost = !isAllDeleted(state, this.lastSequence + 1, upTo + 1)
    this.lastSequence = upTo
    if (isLost) this.#follower?.malformed(upTo, 0, `JetStream does not send what the stream has up to ${upTo}`)
  }

  fail(cause: Error): void {
    this.#state = undefined
    this.#completion?.reject(cause)
  }

  /** @param offset The next message follows it. */
  #begin(offset: number): void {
    const { after } = this.#start ?? {}
    this.#start = undefined
    this.lastSequence = offset
    const fingerprint = offset === this.#state?.lastSequence ? this.#state.lastFingerprint : 0
    this.#follower?.begins(after ?? { epoch: this.epoch, offset, fingerprint }, after !== undefined)
  }

  #completeAt({ sequence, pendingCount }: StreamMessage): void {
    if (this.#completion !== undefined && (sequence >= this.#targetSequence || pendingCount === 0)) this.#complete()
  }

  #complete(): void {
    this.#completion?.resolve()
    this.#completion = undefined
  }

  /** A note that nodes have written into the log. */
  noted(text: string, sequence: number): void {
    const generation = this.#state?.generation ?? 0
    // What is before it in the stream belongs to earlier generations.
    if (Number(text) === generation) this.#follower?.began(sequence)
    if (text === WHO_VOUCHES && this.#isConfirmed) this.#guard.vouch().catch((cause: Error) => this.#owner.lose(cause))
    if (Number(text) > generation) this.lose('another node has begun the log anew')
  }

  #endGeneration(state: LogState): void {
    const lose = (cause: Error) => this.#owner.lose(cause)
    this.#state = undefined
    this.#guard.end(state).then(lose, lose)
  }

  lose(reason: string): void {
    this.#state = undefined
    this.#owner.lose(new LogRestart(reason))
  }
}

function isAllDeleted({ deleted }: LogState, from: number, to: number): boolean {
  if (to - from > deleted.size) return false
  for (let sequence = from; sequence < to; sequence++) if (!deleted.has(sequence)) return false
  return true
}
