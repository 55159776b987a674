import type { Msg, MsgHdrs } from '@nats-io/transport-node'
import { Liveness } from '../remote/liveness.js'
import { explained, type JetStreamClient } from './jetstream-errors.js'
import { type StreamMessage, streamMessageOf } from './stream-message.js'

/** Gets what an {@link OrderedConsumer} brings. */
export interface ConsumerSink {
  take(message: StreamMessage): void
  /** JetStream has sent everything. @param upTo It says so of this sequence. */
  idle(upTo?: number): void
  /** Nothing has come for a while: the stream may be another one. */
  compare(): Promise<void>
  lose(reason: string): void
}

/** JetStream's minimum. */
const MIN_HEARTBEAT_MS = 100
const HEARTBEATS_PER_LINK_HEARTBEAT = 2
/** Heartbeats without a message after which, each time, the stream is asked whether there is none. */
const HEARTBEATS_PER_COMPARISON = 4
const NS_PER_MS = 1_000_000
const CONTROL = 100
const CONSUMER_DELETED = /^consumer deleted$/i

/**
 * Delivers the messages of a stream in order, with flow control and without acknowledgements: JetStream's cheapest way.
 *
 * When a message is missing, the library's ordered consumer makes another consumer and does not report it. This
 * consumer ends; its link is lost, and the next link continues after the last message. It subscribes by itself: the
 * library's consumers make an object with parsed information for every message.
 */
export class OrderedConsumer {
  readonly #client: JetStreamClient
  readonly #stream: string
  readonly #heartbeatMs: number
  readonly #sink: ConsumerSink
  readonly #liveness: Liveness
  readonly #subject: string
  #name: string | undefined
  /** Delivery sequence of the last message. */
  #sequence = 0
  #pendingCount = 0
  /** `#sequence` at the last heartbeat. */
  #heartbeatSequence = -1
  /** Heartbeats since the last message. */
  #stillCount = 0
  #isAsking = false
  #isOver = false

  /** @param inbox As in {@link NatsLogContext}. */
  constructor(client: JetStreamClient, stream: string, inbox: string, heartbeatMs: number, sink: ConsumerSink) {
    this.#client = client
    this.#stream = stream
    this.#heartbeatMs = heartbeatMs
    this.#sink = sink
    this.#subject = `${inbox}.m`
    this.#liveness = new Liveness({
      intervalMs: Math.max(MIN_HEARTBEAT_MS, heartbeatMs),
      // JetStream sends heartbeats by itself.
      probe: () => undefined,
      silent: () => this.#lose('the consumer of the log is silent: it or its stream may have been deleted'),
    })
    this.#liveness.isPaused = true
  }

  /** @param first Sequence to begin with. If the stream no longer has it, the oldest message comes first. */
  async start(first: number): Promise<void> {
    const { jetStream, manager, connection } = this.#client
    const { AckPolicy, DeliverPolicy, ReplayPolicy } = jetStream
    // Subscribes before JetStream begins to send.
    connection.subscribe(this.#subject, {
      callback: (error, message) => {
        if (error === null) this.#guarded(message)
      },
    })
    const idleMs = Math.max(MIN_HEARTBEAT_MS, Math.floor(this.#heartbeatMs / HEARTBEATS_PER_LINK_HEARTBEAT))
    const info = await manager.consumers
      .add(this.#stream, {
        deliver_subject: this.#subject,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: first,
        ack_policy: AckPolicy.None,
        max_deliver: 1,
        replay_policy: ReplayPolicy.Instant,
        flow_control: true,
        idle_heartbeat: idleMs * NS_PER_MS,
        mem_storage: true,
        num_replicas: 1,
      })
      .catch((cause: unknown) => {
        throw explained(cause, this.#client)
      })
    this.#name = info.name
    if (this.#sequence === 0) this.#pendingCount = info.num_pending
    this.#liveness.isPaused = false
  }

  stop(): void {
    this.#isOver = true
    this.#liveness.stop()
  }

  /** Deletes the consumer at JetStream, without waiting: JetStream would delete it by itself some seconds later. */
  delete(): void {
    const { consumers } = this.#client.manager
    if (this.#name !== undefined) consumers.delete(this.#stream, this.#name).catch(() => undefined)
  }

  /** An error thrown here would end the library's reader. */
  #guarded(message: Msg): void {
    if (this.#isOver) return
    this.#liveness.alive()
    try {
      if (message.subject === this.#subject) this.#control(message, message.headers)
      else this.#take(message)
    } catch (cause) {
      this.#lose(cause instanceof Error ? cause.message : String(cause))
    }
  }

  #take(message: Msg): void {
    const delivered = streamMessageOf(message)
    const { deliverySequence, pendingCount } = delivered
    this.#sequence++
    this.#pendingCount = pendingCount
    if (deliverySequence !== this.#sequence)
      this.#lose(`${deliverySequence - this.#sequence} messages of the log are missing on the way`)
    else this.#sink.take(delivered)
  }

  /** A heartbeat, a question of flow control, or the end of the consumer. */
  #control(message: Msg, headers: MsgHdrs | undefined): void {
    if (headers?.code !== CONTROL) {
      if (CONSUMER_DELETED.test(headers?.description ?? '')) this.#lose('the consumer of the log was deleted')
      return
    }
    const { LastConsumerSeqHdr, LastStreamSeqHdr, ConsumerStalledHdr } = this.#client.jetStream.JsHeaders
    const stalled = headers.get(ConsumerStalledHdr)
    if (stalled !== '') this.#client.connection.publish(stalled)
    if (headers.has(LastConsumerSeqHdr))
      this.#heartbeat(Number(headers.get(LastConsumerSeqHdr)), Number(headers.get(LastStreamSeqHdr)))
    else message.respond()
  }

  /**
   * JetStream sends heartbeats while it sends no messages: it has none, or it waits for an answer of flow
   * control. Messages that were pending may also have expired: it is asked after a second heartbeat without a message.
   */
  #heartbeat(sentSequence: number, streamSequence: number): void {
    const isStill = this.#heartbeatSequence === this.#sequence
    this.#heartbeatSequence = this.#sequence
    this.#stillCount = isStill ? this.#stillCount + 1 : 0
    if (sentSequence > this.#sequence) this.#lose('messages of the log are missing on the way')
    else if (this.#pendingCount === 0) this.#idle(streamSequence)
    else if (isStill) this.#askForPending()
  }

  #idle(streamSequence: number): void {
    this.#sink.idle(streamSequence)
    if (this.#isOver || this.#stillCount === 0 || this.#stillCount % HEARTBEATS_PER_COMPARISON !== 0) return
    // Without an answer nothing is known: it is asked again, and the consumer's heartbeats end with its stream.
    this.#sink.compare().catch(() => undefined)
  }

  #askForPending(): void {
    if (this.#name === undefined || this.#isAsking) return
    this.#isAsking = true
    this.#client.manager.consumers
      .info(this.#stream, this.#name)
      .then(
        (info) => {
          const isAllHere = info.num_pending === 0 && info.delivered.consumer_seq === this.#sequence
          if (this.#isOver || !isAllHere) return
          this.#pendingCount = 0
          this.#sink.idle()
        },
        (cause: unknown) => this.#lose(explained(cause, this.#client).message),
      )
      .finally(() => {
        this.#isAsking = false
      })
  }

  #lose(reason: string): void {
    if (this.#isOver) return
    this.stop()
    this.#sink.lose(reason)
  }
}
