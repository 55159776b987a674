import type { Position } from '../../ports/broker.js'
import { decodeEnvelope } from '../remote/envelope.js'
import type { LinkEvents, LogFollower } from '../remote/link.js'
import { AckSubject } from './ack-subject.js'
import { CONTROL, NatsHeaders } from './headers.js'
import type { JetStreamApi } from './jetstream-api.js'
import type { LastSeen } from './last-seen.js'
import type { LogState, LogStream } from './log-stream.js'
import type { NatsMessageBounds } from './parser.js'
import type { NatsSubjects } from './subjects.js'
import type { NatsWire } from './wire.js'

/** What a {@link LogConsumer} works with. */
export interface LogConsumerContext {
  readonly wire: NatsWire
  readonly api: JetStreamApi
  readonly stream: LogStream
  readonly subjects: NatsSubjects
  readonly lastSeen: LastSeen
  readonly events: LinkEvents
  /** Whether messages with this key are logged. */
  readonly logs: (key: string) => boolean
  /** Whether messages with this key come by a subscription. */
  readonly isSubscribed: (key: string) => boolean
  /** Where messages of the log are to be sent. */
  readonly deliverSubject: string
  readonly heartbeatMs: number
}

/** JetStream takes no shorter ones. */
const MIN_HEARTBEAT_MS = 100
const HEARTBEATS_PER_LINK_HEARTBEAT = 2
/** Checks in a row, two per heartbeat, without a word of the consumer: two heartbeats at most. */
const MAX_SILENT_CHECKS = 4
const NS_PER_MS = 1_000_000

/** Why a place in the log is no longer what it was; the next try finds another epoch. */
class LostEnd extends Error {
  constructor() {
    super('the log has lost its end, and begins anew')
  }
}

/**
 * Follows the stream with a consumer of JetStream's that lives as long as its link: pushed in order, without acknowledgements, with
 * flow control. Whatever is missing on the way ends the link; the next one goes on from the last message.
 */
export class LogConsumer {
  readonly #context: LogConsumerContext
  readonly #ack = new AckSubject()
  #follower: LogFollower | undefined
  #state: LogState | undefined
  /** Where following began, until that is told. */
  #awaited: { readonly after: Position | undefined } | undefined
  #lastSequence = 0
  #consumerSequence = 0
  /** Everything has come when this has. */
  #targetSequence = 0
  #waiter: { resolve(): void; reject(cause: Error): void } | undefined
  #name: string | undefined
  #silentCheckCount = 0

  constructor(context: LogConsumerContext) {
    this.#context = context
  }

  /** Of what comes; empty before anything does. */
  get epoch(): string {
    return this.#state?.epoch ?? ''
  }

  /** Everything up to here has come. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  /** What JetStream calls it, once it is there. */
  get name(): string | undefined {
    return this.#name
  }

  /** As `Link.follow`. */
  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    const { stream, lastSeen } = this.#context
    const state = await stream.open()
    const place = after?.epoch === state.epoch ? after : undefined
    const isSeen = place !== undefined && lastSeen.knows(place)
    const sequence = isSeen ? lastSeen.sequence : (place?.offset ?? 0)
    if (place !== undefined && state.lastSequence < sequence) throw await this.#endGeneration(state)
    const isContinued = place !== undefined && state.firstSequence <= sequence + 1
    // The message at the place comes once more, to see that it is the same.
    const isCompared = isContinued && isSeen && state.firstSequence <= sequence && !state.deleted.has(sequence)
    const first = isCompared ? sequence : sequence + 1
    this.#follower = follower
    this.#state = state
    this.#lastSequence = first - 1
    this.#targetSequence = state.lastSequence
    this.#awaited = { after: isContinued ? place : undefined }
    if (isContinued && !isCompared) this.#begin(sequence)
    const isEmpty = state.firstSequence > state.lastSequence
    if (!isContinued && isEmpty) this.#begin(state.lastSequence)
    const isAllThere = isEmpty || (isContinued && first > state.lastSequence)
    const completion = isAllThere ? Promise.resolve() : this.#completion()
    await Promise.all([this.#create(isContinued ? first : undefined), completion])
  }

  /** Something has come for the consumer. */
  message(bytes: Buffer, bounds: NatsMessageBounds): void {
    this.#silentCheckCount = 0
    if (this.#state === undefined) return
    const { headersAt, payloadAt, replyAt, replyEnd } = bounds
    if (payloadAt > headersAt) {
      const headers = new NatsHeaders(bytes, headersAt, payloadAt)
      if (headers.status !== 0) {
        this.#control(headers, bytes.toString('latin1', replyAt, replyEnd))
        return
      }
    }
    const ack = this.#ack
    if (!ack.read(bytes, replyAt, replyEnd)) {
      this.#context.events.malformed('a message of the log that does not say where it stands')
    } else if (ack.consumerSequence !== ++this.#consumerSequence) {
      this.#lose(`${ack.consumerSequence - this.#consumerSequence} messages of the log are missing on the way`)
    } else this.#take(this.#state, bytes, bounds)
  }

  /** Called twice per heartbeat of the link. */
  check(): void {
    if (this.#name === undefined || ++this.#silentCheckCount < MAX_SILENT_CHECKS) return
    this.#lose('the consumer of the log is silent: it or its stream may have been deleted')
  }

  /** The link is over. */
  fail(cause: Error): void {
    this.#state = undefined
    this.#name = undefined
    this.#waiter?.reject(cause)
  }

  async #create(first: number | undefined): Promise<void> {
    const { api, stream, deliverSubject, heartbeatMs } = this.#context
    const idleMs = Math.max(MIN_HEARTBEAT_MS, Math.floor(heartbeatMs / HEARTBEATS_PER_LINK_HEARTBEAT))
    const answer = await api.ask(`CONSUMER.CREATE.${stream.name}`, {
      stream_name: stream.name,
      config: {
        deliver_subject: deliverSubject,
        ...(first === undefined
          ? { deliver_policy: 'all' }
          : { deliver_policy: 'by_start_sequence', opt_start_seq: first }),
        ack_policy: 'none',
        max_deliver: 1,
        replay_policy: 'instant',
        flow_control: true,
        idle_heartbeat: idleMs * NS_PER_MS,
        mem_storage: true,
        num_replicas: 1,
      },
    })
    this.#silentCheckCount = 0
    this.#name = 'name' in answer ? String(answer.name) : ''
  }

  #completion(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject }
    })
  }

  #take(state: LogState, bytes: Buffer, bounds: NatsMessageBounds): void {
    const ack = this.#ack
    const { sequence } = ack
    const { lastSeen } = this.#context
    if (this.#awaited !== undefined) {
      if (this.#awaited.after === undefined) this.#begin(sequence - 1)
      else if (sequence === lastSeen.sequence) {
        this.#compare(state)
        return
      }
    }
    if (sequence !== this.#lastSequence + 1 && !isAllDeleted(state, this.#lastSequence + 1, sequence)) {
      this.#lose(`the stream has let go of messages after ${this.#lastSequence} before they were sent`)
      return
    }
    this.#lastSequence = sequence
    lastSeen.note(state.epoch, ack)
    this.#deliver(state, bytes, bounds)
    this.#completeAt(sequence)
  }

  /** The message at the place to go on from has come again. */
  #compare(state: LogState): void {
    const { sequence } = this.#ack
    if (this.#context.lastSeen.is(this.#ack)) {
      this.#begin(sequence)
      this.#completeAt(sequence)
      return
    }
    this.#state = undefined
    const lose = (cause: Error) => this.#context.wire.lose(cause)
    this.#endGeneration(state).then(lose, lose)
  }

  #deliver(state: LogState, bytes: Buffer, { subjectAt, subjectEnd, payloadAt, payloadEnd }: NatsMessageBounds): void {
    const { subjects, events, logs, isSubscribed } = this.#context
    const key = subjects.keyIn(bytes, subjectAt, subjectEnd)
    if (key === undefined) {
      const subject = bytes.toString('utf8', subjectAt, subjectEnd)
      if (subject === subjects.ofLog) this.#noteGeneration(state, bytes.toString('latin1', payloadAt, payloadEnd))
      else if (!subjects.isOwn(subject)) events.malformed(`the subject ${subject} is that of no key`)
      return
    }
    // A stream may take more than the rules say: what is the server's own, or what NATS cannot tell apart.
    const isLogged = logs(key)
    if (!isLogged && isSubscribed(key)) return
    const delivery = decodeEnvelope(key, bytes, payloadAt, payloadEnd)
    if (delivery === undefined) events.malformed(`an envelope that is cut or of another version, for ${key}`)
    // Of a node that does not log this key: it has one place for all its messages, and they cannot have one each.
    else if (!isLogged || delivery.source?.isBundle === true) events.deliver(delivery)
    else {
      const { payload, isBinary, source, messageId } = delivery
      const { sequence: offset, timeMs } = this.#ack
      this.#follower?.message({ key, payload, isBinary, source, messageId, offset, timeMs })
    }
  }

  /** @param offset What follows stands after it. */
  #begin(offset: number): void {
    const { after } = this.#awaited ?? {}
    this.#awaited = undefined
    this.#lastSequence = offset
    this.#follower?.begins(after ?? { epoch: this.epoch, offset }, after !== undefined)
  }

  #completeAt(sequence: number): void {
    if (sequence < this.#targetSequence && this.#ack.pendingCount > 0) return
    this.#waiter?.resolve()
    this.#waiter = undefined
  }

  #control(headers: NatsHeaders, replyTo: string): void {
    if (headers.status !== CONTROL) {
      this.#lose(headers.firstLine)
      return
    }
    const stalled = headers.get('Nats-Consumer-Stalled') ?? ''
    for (const subject of [replyTo, stalled]) if (subject !== '') this.#context.wire.say(subject, '', '')
    const sentCount = Number(headers.get('Nats-Last-Consumer') ?? this.#consumerSequence)
    if (sentCount > this.#consumerSequence) this.#lose('messages of the log are missing on the way')
    else if (replyTo === '' && stalled === '') this.#idle()
  }

  /** The consumer has sent all there is. */
  #idle(): void {
    if (this.#awaited?.after !== undefined) this.#lose('the stream has let go of the place to go on from')
    else if (this.#awaited !== undefined) this.#begin(this.#targetSequence)
    this.#waiter?.resolve()
    this.#waiter = undefined
  }

  #noteGeneration(state: LogState, text: string): void {
    if (Number(text) > state.generation) this.#lose('another node has found that the log has lost its end')
  }

  /** Sees to it that all nodes take what there is now for another log. */
  async #endGeneration({ generation }: LogState): Promise<Error> {
    const { stream, wire, subjects } = this.#context
    await stream.beginGeneration(generation + 1)
    wire.say(subjects.ofLog, '', String(generation + 1))
    return new LostEnd()
  }

  #lose(reason: string): void {
    this.#state = undefined
    this.#context.wire.lose(new Error(reason))
  }
}

/** Whether nothing else was between. */
function isAllDeleted({ deleted }: LogState, from: number, to: number): boolean {
  if (to - from > deleted.size) return false
  for (let sequence = from; sequence < to; sequence++) if (!deleted.has(sequence)) return false
  return true
}
