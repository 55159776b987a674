import { type Deferred, deferred } from '../../base/deferred.js'
import type { Position } from '../../ports/broker.js'
import { decodeEnvelope, logged } from '../remote/envelope.js'
import type { LogFollower } from '../remote/link.js'
import { type LogStart, WHO_VOUCHES } from './generation-guard.js'
import type { NatsLog } from './log.js'
import type { LogState } from './log-stream.js'
import { fingerprintOfStored, type StreamMessage, storedAtMs } from './stream-message.js'

/**
 * Follows the stream while its link is up. A hole in the log ends the link; the next one continues after the last
 * message.
 */
export class LogFollow {
  readonly #log: NatsLog
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

  constructor(log: NatsLog) {
    this.#log = log
  }

  /** Epoch of the messages; empty before `follow`. */
  get epoch(): string {
    return this.#state?.epoch ?? ''
  }

  async follow(position: Position | undefined, follower: LogFollower): Promise<void> {
    const { stream, consumer, guard } = this.#log
    const { state, start } = await guard.open(position)
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
    const first = isContinued ? start.sequence + 1 : stream.oldestRead(state)
    await Promise.all([consumer.start(first), completion])
    if (isContinued) await guard.vouch()
    this.#isConfirmed = true
  }

  take(message: StreamMessage): void {
    const state = this.#state
    if (state === undefined) return
    const { sequence } = message
    const { lastSeen } = this.#log.context
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
      this.#lose(`the stream has dropped messages after ${this.lastSequence} before they were sent`)
      return
    }
    this.lastSequence = sequence
    lastSeen.note(state.epoch, message)
    const fingerprint = fingerprintOfStored(message.time)
    this.#deliver(state, message, fingerprint)
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
    if (this.#start?.after !== undefined) this.#lose('the stream has dropped the message to continue from')
    else if (this.#start !== undefined) this.#begin(this.#targetSequence)
    this.#complete()
  }

  /**
   * Ends the link when the stream is no longer what its consumer sends. A cluster that has lost more than it can spare may
   * keep another log on the consumer's server than on the one that stores: it sends nothing more, as if there were nothing.
   */
  async compare(): Promise<void> {
    const state = this.#state
    if (state === undefined || this.#start !== undefined) return
    const sent = this.lastSequence
    const { epoch, lastSequence } = await this.#log.stream.state()
    if (this.#state !== state) return
    if (epoch !== state.epoch || lastSequence < sent) this.#lose('the stream is another one than its consumer sends')
    else if (this.lastSequence < this.#comparedSequence)
      this.#lose(`JetStream does not send what the stream has up to ${this.#comparedSequence}`)
    this.#comparedSequence = lastSequence
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

  #deliver(state: LogState, message: StreamMessage, fingerprint: number): void {
    const { subjects, events } = this.#log.link
    const { subject, data, sequence } = message
    const key = subjects.keyOf(subject)
    if (key === undefined) {
      if (subject === subjects.ofLog) this.#noteGeneration(state, Buffer.from(data).toString(), sequence)
      else if (!subjects.isOwn(subject)) events.malformed(`the subject ${subject} is that of no key`)
      return
    }
    // A stream may store more than the rules say: reserved keys, and keys that its subjects cannot exclude.
    const isLogged = this.#log.logs(key)
    if (!isLogged && this.#log.link.subscriptions.isLive(key)) return
    const delivery = decodeEnvelope(key, data)
    if (delivery?.source?.node === this.#log.link.context.node) this.#log.acks.stored(delivery.source.sequence)
    const defect = `an envelope that is cut or of another version, for ${key}`
    if (delivery === undefined && isLogged) this.#follower?.malformed(sequence, fingerprint, defect, key)
    else if (delivery === undefined) events.malformed(defect, key)
    // A bundle comes from a node that does not log this key. It has one offset for all its messages.
    else if (!isLogged || delivery.source?.isBundle === true) {
      events.deliver(delivery)
      if (isLogged) this.#follower?.unlogged(sequence, fingerprint, key)
    } else this.#follower?.message(logged(delivery, sequence, fingerprint, storedAtMs(message)))
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

  #noteGeneration({ generation }: LogState, text: string, sequence: number): void {
    // What is before it in the stream belongs to earlier generations.
    if (Number(text) === generation) this.#follower?.began(sequence)
    if (text === WHO_VOUCHES && this.#isConfirmed)
      this.#log.guard.vouch().catch((cause: Error) => this.#log.link.lose(cause))
    if (Number(text) > generation) this.#lose('another node has found that the log has lost its end')
  }

  #endGeneration(state: LogState): void {
    const lose = (cause: Error) => this.#log.link.lose(cause)
    this.#state = undefined
    this.#log.guard.end(state).then(lose, lose)
  }

  #lose(reason: string): void {
    this.#state = undefined
    this.#log.link.lose(new Error(reason))
  }
}

function isAllDeleted({ deleted }: LogState, from: number, to: number): boolean {
  if (to - from > deleted.size) return false
  for (let sequence = from; sequence < to; sequence++) if (!deleted.has(sequence)) return false
  return true
}
