import { type ConsumerConfig, type ConsumerContext, ModelConsumer, NS_PER_MS } from './consumer.js'
import { Lane } from './lane.js'
import { type NatsMessage, NO_BYTES, statusHeaders } from './protocol.js'

/** The window doubles with each answer of flow control, up to this multiple of the first. */
const MAX_WINDOW_FACTOR = 16
const INACTIVE_NS = 5_000_000_000

/** Sends by itself, with heartbeats and flow control, until nobody subscribes to its subject. */
export class PushConsumer extends ModelConsumer {
  readonly #subject: string
  readonly #heartbeatMs: number
  readonly #inactiveMs: number
  readonly #lane: Lane
  #heartbeatTimer: NodeJS.Timeout | undefined
  #isWaking = false
  #isOver = false
  #sentAtMs = Date.now()
  #leftAtMs: number | undefined
  #windowBytes: number
  #unansweredBytes = 0
  #flowCount = 0
  /** The subject for the answer to a question of flow control, and the bytes that it is for. */
  #asked: { readonly subject: string; bytes: number } | undefined

  constructor(name: string, config: ConsumerConfig, context: ConsumerContext) {
    super(name, { inactive_threshold: INACTIVE_NS, ...config }, context)
    const { deliver_subject, idle_heartbeat, flow_control, filter_subject } = this.config
    if (deliver_subject === undefined || idle_heartbeat === undefined || flow_control !== true || filter_subject)
      throw new Error('the model sends only with heartbeats, flow control, and without a filter')
    this.#subject = deliver_subject
    this.#windowBytes = context.core.options.windowBytes
    this.#heartbeatMs = idle_heartbeat / NS_PER_MS
    this.#inactiveMs = (this.config.inactive_threshold ?? INACTIVE_NS) / NS_PER_MS
    this.#lane = new Lane(() => context.core.options.delayMs('deliver'))
    this.#waitForHeartbeat()
    this.wake()
  }

  wake(): void {
    if (this.#isWaking || this.#isOver) return
    this.#isWaking = true
    this.#lane.push(() => this.#send())
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#heartbeatTimer)
    this.#lane.clear()
  }

  /** The client has read so far. */
  answered(subject: string): void {
    if (this.#asked?.subject !== subject) return
    this.#unansweredBytes = Math.max(0, this.#unansweredBytes - this.#asked.bytes)
    this.#windowBytes = Math.min(MAX_WINDOW_FACTOR * this.context.core.options.windowBytes, 2 * this.#windowBytes)
    this.#asked = undefined
    this.wake()
  }

  get #hasInterest(): boolean {
    return this.context.core.hasInterest(this.#subject)
  }

  get #isStalled(): boolean {
    return this.#unansweredBytes > this.#windowBytes
  }

  #send(): void {
    this.#isWaking = false
    while (!this.#isOver && !this.context.isSilent() && !this.#isStalled && this.#hasInterest) {
      const message = this.take()
      if (message === undefined) return
      this.#sentAtMs = Date.now()
      this.context.core.deliver(this.#subject, message)
      this.#count(message)
    }
  }

  #count({ subject, reply, headers, payload }: NatsMessage): void {
    const size = subject.length + reply.length + headers.length + payload.length
    this.#unansweredBytes += size
    if (this.#asked === undefined && this.#unansweredBytes > this.#windowBytes / 2) this.#ask()
    else if (this.#asked !== undefined && this.#unansweredBytes - this.#asked.bytes >= this.#windowBytes)
      this.#asked.bytes += size
  }

  #ask(): void {
    const subject = `$JS.FC.${this.context.stream.config.name}.${this.name}.${(++this.#flowCount).toString(36)}`
    this.#asked = { subject, bytes: this.#unansweredBytes }
    this.#tell(statusHeaders('100 FlowControl Request'), subject)
  }

  #waitForHeartbeat(): void {
    this.#heartbeatTimer = setTimeout(() => {
      this.#beat()
      if (!this.#isOver) this.#waitForHeartbeat()
    }, this.#heartbeatMs)
  }

  #beat(): void {
    if (this.context.isSilent()) return
    const nowMs = Date.now()
    if (!this.#hasInterest) {
      this.#leftAtMs ??= nowMs
      if (nowMs - this.#leftAtMs >= this.#inactiveMs) this.context.expire(this)
      return
    }
    this.#leftAtMs = undefined
    this.wake()
    if (nowMs - this.#sentAtMs < this.#heartbeatMs) return
    const fields = {
      'Nats-Last-Consumer': this.sentCount,
      'Nats-Last-Stream': this.nextSequence - 1,
      ...(this.#isStalled && this.#asked !== undefined ? { 'Nats-Consumer-Stalled': this.#asked.subject } : {}),
    }
    this.#tell(statusHeaders('100 Idle Heartbeat', fields))
  }

  #tell(headers: Buffer, reply = ''): void {
    this.context.core.deliver(this.#subject, { subject: this.#subject, reply, headers, payload: NO_BYTES })
  }
}
