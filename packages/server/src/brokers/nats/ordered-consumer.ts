import type { ConsumerNotification, JetStreamManager, JsMsg } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { Liveness } from '../remote/liveness.js'
import type { NatsJetStream } from './library.js'

/** What an {@link OrderedConsumer} works with. */
export interface OrderedConsumerContext {
  readonly jetStream: NatsJetStream
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
  readonly stream: string
  /** Where JetStream sends the messages. */
  readonly deliverSubject: string
  /** The link's interval. */
  readonly heartbeatMs: number
  /** The next message; none is missing before it. */
  readonly take: (message: JsMsg) => void
  /** JetStream has sent everything. */
  readonly idle: () => void
  /** Messages are missing, or JetStream is silent. The last event. */
  readonly lost: (cause: Error) => void
  /** The error to throw for a failed request. */
  readonly explained: (cause: unknown) => Error
}

/** JetStream's minimum. */
const MIN_HEARTBEAT_MS = 100
const HEARTBEATS_PER_LINK_HEARTBEAT = 2
const NS_PER_MS = 1_000_000

/**
 * Delivers the messages of a stream in order, with flow control and without acknowledgements: JetStream's cheapest way.
 *
 * When a message is missing, the library's ordered consumer makes another consumer and does not report it. This
 * consumer ends; its link is lost, and the next link continues after the last message.
 */
export class OrderedConsumer {
  readonly #context: OrderedConsumerContext
  readonly #liveness: Liveness
  #name: string | undefined
  /** Delivery sequence of the last message. */
  #sequence = 0
  #pendingCount = 0
  /** `#sequence` at the last heartbeat. */
  #heartbeatSequence = -1
  #isAsking = false
  #isOver = false

  constructor(context: OrderedConsumerContext) {
    this.#context = context
    this.#liveness = new Liveness({
      intervalMs: Math.max(MIN_HEARTBEAT_MS, context.heartbeatMs),
      // JetStream sends heartbeats by itself.
      probe: () => undefined,
      silent: () => this.#lose('the consumer of the log is silent: it or its stream may have been deleted'),
    })
    this.#liveness.isPaused = true
  }

  /** @param first Sequence to begin with. If the stream no longer has it, the oldest message comes first. */
  async start(first: number): Promise<void> {
    const { jetStream, connection, manager, stream, deliverSubject, heartbeatMs } = this.#context
    const { AckPolicy, DeliverPolicy, ReplayPolicy } = jetStream
    // Subscribes before JetStream begins to send.
    const consumer = await jetStream.jetstream(connection).consumers.getBoundPushConsumer({
      deliver_subject: deliverSubject,
    })
    const messages = await consumer.consume({ callback: (message) => this.#guarded(message) })
    void this.#watch(messages.status())
    const idleMs = Math.max(MIN_HEARTBEAT_MS, Math.floor(heartbeatMs / HEARTBEATS_PER_LINK_HEARTBEAT))
    const info = await manager.consumers
      .add(stream, {
        deliver_subject: deliverSubject,
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
        throw this.#context.explained(cause)
      })
    this.#name = info.name
    if (this.#sequence === 0) this.#pendingCount = info.num_pending
    this.#liveness.isPaused = false
  }

  /** Reports nothing more. */
  stop(): void {
    this.#isOver = true
    this.#liveness.stop()
  }

  /** Deletes the consumer at JetStream, without waiting: JetStream would delete it by itself some seconds later. */
  delete(): void {
    const { manager, stream } = this.#context
    if (this.#name !== undefined) manager.consumers.delete(stream, this.#name).catch(() => undefined)
  }

  async #watch(notes: AsyncIterable<ConsumerNotification>): Promise<void> {
    try {
      for await (const note of notes) {
        if (this.#isOver) return
        this.#liveness.alive()
        if (note.type === 'heartbeat') this.#heartbeat(note.lastConsumerSequence)
        else if (note.type === 'consumer_deleted') this.#lose('the consumer of the log was deleted')
      }
    } catch (cause) {
      this.#lose(cause instanceof Error ? cause.message : String(cause))
    }
  }

  /** The library ignores errors thrown here. */
  #guarded(message: JsMsg): void {
    if (this.#isOver) return
    this.#liveness.alive()
    try {
      this.#take(message)
    } catch (cause) {
      this.#lose(cause instanceof Error ? cause.message : String(cause))
    }
  }

  #take(message: JsMsg): void {
    const { deliverySequence, pending } = message.info
    this.#sequence++
    this.#pendingCount = pending
    if (deliverySequence !== this.#sequence)
      this.#lose(`${deliverySequence - this.#sequence} messages of the log are missing on the way`)
    else this.#context.take(message)
  }

  /**
   * JetStream sends heartbeats while it sends no messages: it has none, or it waits for flow control, which the library
   * answers. Messages that were pending may also have expired: it is asked after a second heartbeat without a message.
   */
  #heartbeat(sentSequence: number): void {
    const isStill = this.#heartbeatSequence === this.#sequence
    this.#heartbeatSequence = this.#sequence
    if (sentSequence > this.#sequence) this.#lose('messages of the log are missing on the way')
    else if (this.#pendingCount === 0) this.#context.idle()
    else if (isStill) this.#askForPending()
  }

  #askForPending(): void {
    const { manager, stream, explained } = this.#context
    if (this.#name === undefined || this.#isAsking) return
    this.#isAsking = true
    manager.consumers
      .info(stream, this.#name)
      .then(
        (info) => {
          const isAllHere = info.num_pending === 0 && info.delivered.consumer_seq === this.#sequence
          if (this.#isOver || !isAllHere) return
          this.#pendingCount = 0
          this.#context.idle()
        },
        (cause: unknown) => this.#lose(explained(cause).message),
      )
      .finally(() => {
        this.#isAsking = false
      })
  }

  #lose(reason: string): void {
    if (this.#isOver) return
    this.stop()
    this.#context.lost(new Error(reason))
  }
}
