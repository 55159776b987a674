import type { ModelCore } from './core.js'
import type { NatsMessage } from './protocol.js'
import { type ModelStream, type StoredMessage, timeText } from './stream.js'

/** As the API has it. */
export interface ConsumerConfig {
  readonly name?: string
  readonly durable_name?: string
  readonly deliver_subject?: string
  readonly deliver_policy: string
  readonly opt_start_seq?: number
  readonly filter_subject?: string
  readonly flow_control?: boolean
  /** Nanoseconds, as in the next one. */
  readonly idle_heartbeat?: number
  readonly inactive_threshold?: number
  readonly mem_storage?: boolean
}

/** What a consumer works with. */
export interface ConsumerContext {
  readonly core: ModelCore
  readonly stream: ModelStream
  /** JetStream does nothing for now. */
  readonly isSilent: () => boolean
  /** It ends by itself. */
  readonly expire: (consumer: ModelConsumer) => void
}

export const NS_PER_MS = 1_000_000

/** A place in a stream from which messages are sent on. */
export abstract class ModelConsumer {
  readonly name: string
  readonly config: ConsumerConfig
  protected readonly context: ConsumerContext
  readonly #createdNs = BigInt(Date.now()) * BigInt(NS_PER_MS)
  /** Of the stream. */
  protected nextSequence: number
  /** Messages that it has sent. */
  protected sentCount = 0
  /** What it is before it sends anything: the server answers with it when it makes one. */
  readonly firstInfo: Record<string, unknown>

  constructor(name: string, config: ConsumerConfig, context: ConsumerContext) {
    this.name = name
    this.config = config
    this.context = context
    this.nextSequence = this.#firstOf(config)
    this.firstInfo = this.info()
  }

  get isDurable(): boolean {
    return this.config.durable_name !== undefined
  }

  /** The stream may have something for it. */
  abstract wake(): void
  /** It ends, and says so to nobody. */
  abstract stop(): void

  /** As an answer of the API has it. */
  info(): Record<string, unknown> {
    const { core, stream } = this.context
    const { deliver_subject } = this.config
    return {
      stream_name: stream.config.name,
      name: this.name,
      created: timeText(this.#createdNs),
      config: this.config,
      delivered: { consumer_seq: this.sentCount, stream_seq: this.nextSequence - 1 },
      ack_floor: { consumer_seq: 0, stream_seq: 0 },
      num_ack_pending: 0,
      num_redelivered: 0,
      num_waiting: 0,
      num_pending: this.pendingCount,
      ...(deliver_subject === undefined ? {} : { push_bound: core.hasInterest(deliver_subject) }),
    }
  }

  protected get pendingCount(): number {
    return this.context.stream.countFrom(this.nextSequence, this.config.filter_subject)
  }

  /** The next message, which counts as sent; `undefined` when there is none. */
  protected take(): NatsMessage | undefined {
    const { stream } = this.context
    const stored = stream.next(this.nextSequence, this.config.filter_subject ?? '')
    if (stored === undefined) return undefined
    this.nextSequence = stored.sequence + 1
    this.sentCount++
    return { ...stored, reply: this.#replyOf(stored) }
  }

  #replyOf({ sequence, timeNs }: StoredMessage): string {
    const { name } = this.context.stream.config
    return `$JS.ACK.${name}.${this.name}.1.${sequence}.${this.sentCount}.${timeNs}.${this.pendingCount}`
  }

  #firstOf({ deliver_policy, opt_start_seq = 0 }: ConsumerConfig): number {
    const { firstSequence, lastSequence } = this.context.stream
    if (deliver_policy === 'new') return lastSequence + 1
    if (deliver_policy !== 'by_start_sequence') throw new Error(`the model has no deliver_policy ${deliver_policy}`)
    return Math.min(Math.max(opt_start_seq, firstSequence), lastSequence + 1)
  }
}
