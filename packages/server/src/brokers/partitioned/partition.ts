import { WebMQError } from 'webmq-client/protocol'
import type {
  Accepted,
  Broker,
  BrokerSink,
  BrokerStats,
  BrokerStatus,
  InboundMessage,
  OutboundMessage,
  Position,
  RefusedMessage,
} from '../../ports/broker.js'
import { copyBytes } from '../../ports/copy-bytes.js'
import { andThen, isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import type { StartGate } from './start-gate.js'
import { Waiters } from './waiters.js'

/** What a {@link Partition} works with. */
export interface PartitionContext {
  /** Makes an instance of the adapter for this partition, not started. */
  create(): MaybePromise<Broker>
  readonly gate: Pick<StartGate, 'run'>
  /** Time that a call waits for the partition to start. */
  readonly timeoutMs: number
  /** A partition that nobody on this node has needed for so long stops. */
  readonly idleMs: number
  readonly events: PartitionEvents
}

/** What a {@link Partition} reports, while it runs. Positions say the partition. */
export interface PartitionEvents {
  deliver(message: InboundMessage): boolean
  gap: BrokerSink['gap']
  refused(message: RefusedMessage): void
  /** Its status is another, or it has started, or it has stopped. */
  statusChanged(): void
  /** An instance has stopped, with these counts. */
  retired(stats: BrokerStats): void
  /** It could not be started or stopped. Calls that wait for it get the same error. */
  failed(error: unknown): void
}

/**
 * One partition of the log: an instance of the adapter, which runs while this node needs it, and follows its log while
 * somebody listens or reads. A publish alone starts it without the log, if the adapter can do that.
 *
 * An instance that nobody has needed for a while ends. The next listener or reader waits until the copy of the log is complete again.
 */
export class Partition {
  readonly index: number
  readonly #context: PartitionContext
  /** Calls that wait for the instance to run. */
  readonly #starters: Waiters
  /** Calls that wait for its copy of the log. */
  readonly #readers: Waiters
  /** The instance that starts, or runs. */
  #instance: Broker | undefined
  /** The same, once it runs. */
  #broker: Broker | undefined
  #hasCopy = false
  #isFollowing = false
  #status: BrokerStatus = 'down'
  #statusCause: Error | undefined
  #starting: Promise<void> | undefined
  readonly #stopping = new Set<Promise<void>>()
  #bindCount = 0
  /** Somebody has published or read since the last look. */
  #wasUsed = false
  #wasRead = false
  #idleTimer: NodeJS.Timeout | undefined
  #isStopped = false
  #epoch = ''
  #taggedEpoch = ''

  constructor(index: number, context: PartitionContext) {
    this.index = index
    this.#context = context
    this.#starters = new Waiters(context.timeoutMs)
    this.#readers = new Waiters(context.timeoutMs)
  }

  /** The instance that runs; `undefined` while none does. */
  get broker(): Broker | undefined {
    return this.#broker
  }

  get status(): BrokerStatus {
    return this.#status
  }

  /** Why it is not up. */
  get statusCause(): Error | undefined {
    return this.#statusCause
  }

  /** The end of its log; `undefined` while this node has no copy. */
  get position(): MaybePromise<Position | undefined> {
    return this.#broker === undefined || !this.#hasCopy
      ? undefined
      : andThen(this.#broker.position(), (position) => position && this.tagged(position))
  }

  /**
   * Keeps the partition running until {@link release}. Resolves once its copy of the log is complete.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`; it is then not kept.
   */
  hold(): void | Promise<void> {
    this.#bindCount++
    const held = this.use(() => undefined)
    if (!isPromise(held)) return
    return held.catch((error: unknown) => {
      this.release()
      throw error
    })
  }

  release(): void {
    this.#bindCount--
    this.#wasRead = true
  }

  /**
   * Calls with the instance once this node has a copy of the log: now, or after those that wait.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`.
   */
  use<T>(call: (broker: Broker) => MaybePromise<T>): MaybePromise<T> {
    this.#wasRead = true
    if (this.#broker !== undefined && this.#hasCopy) return call(this.#broker)
    return this.#wait(this.#readers, call)
  }

  #publishing<T>(call: (broker: Broker) => MaybePromise<T>): MaybePromise<T> {
    this.#wasUsed = true
    return this.#broker === undefined ? this.#wait(this.#starters, call) : call(this.#broker)
  }

  #wait<T>(waiters: Waiters, call: (broker: Broker) => MaybePromise<T>): Promise<T> {
    if (this.#isStopped) throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the server stops' })
    const used = waiters.add(call)
    if (this.#broker !== undefined) this.#follow(this.#broker)
    // The calls that wait get the error.
    else this.begin().catch(() => undefined)
    return used
  }

  /** The node starts, perhaps again. Resolves when it runs, if its listeners need it. @throws as {@link begin}. */
  async open(): Promise<void> {
    this.#isStopped = false
    if (this.#bindCount > 0) await this.begin()
  }

  /**
   * Resolves when it runs.
   * @throws what the instance says.
   */
  begin(): Promise<void> {
    if (this.#broker !== undefined) return Promise.resolve()
    this.#starting ??= this.#start()
    return this.#starting
  }

  publish(message: OutboundMessage): Accepted | Promise<Accepted> {
    const kept = this.#broker === undefined ? { ...message, payload: copyBytes(message.payload) } : message
    return this.#publishing((broker) => this.#publishOn(broker, kept))
  }

  /** Publishes in order. */
  publishBatch(messages: readonly OutboundMessage[]): MaybePromise<readonly Accepted[]> {
    const kept =
      this.#broker === undefined
        ? messages.map((message) => ({ ...message, payload: copyBytes(message.payload) }))
        : messages
    return this.#publishing(async (broker) => {
      const accepted = broker.publishBatch?.(kept) ?? Promise.all(kept.map((message) => broker.publish(message)))
      return (await accepted).map((each) => this.#taggedAnswer(each))
    })
  }

  setAddress(address: string): void {
    this.#instance?.setAddress?.(address)
  }

  /** A position of the instance, as this node gives it out. */
  tagged({ epoch, offset }: Position): Position {
    if (epoch !== this.#epoch) {
      this.#epoch = epoch
      this.#taggedEpoch = `${this.index}.${epoch}`
    }
    return { epoch: this.#taggedEpoch, offset }
  }

  /** The position of the instance that a position of this partition stands for. */
  untagged({ epoch, offset }: Position): Position {
    const tag = `${this.index}.`
    return { epoch: epoch.startsWith(tag) ? epoch.slice(tag.length) : epoch, offset }
  }

  /** A message of the instance, as this node gives it out. */
  taggedMessage(message: InboundMessage): InboundMessage {
    const { position } = message
    return position === undefined ? message : { ...message, position: this.tagged(position) }
  }

  /** @param limitMs See {@link Broker.stop}. */
  async stop(limitMs: number): Promise<void> {
    this.#isStopped = true
    this.#failAll(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'the server stops' }))
    this.#retire(limitMs)
    await Promise.all(this.#stopping)
  }

  #publishOn(broker: Broker, message: OutboundMessage): MaybePromise<Accepted> {
    return andThen(broker.publish(message), (accepted) => this.#taggedAnswer(accepted))
  }

  #taggedAnswer(accepted: Accepted): Accepted {
    const { position } = accepted
    return position === undefined ? accepted : { ...accepted, position: this.tagged(position) }
  }

  async #start(): Promise<void> {
    try {
      await this.#context.gate.run(async () => {
        if (this.#isStopped) return
        const instance = await this.#context.create()
        if (this.#isStopped) return
        this.#instance = instance
        await instance.start(this.#sinkOf(instance))
        if (this.#instance === instance) this.#began(instance)
      })
    } catch (error) {
      this.#retire()
      this.#failAll(error)
      if (!this.#isStopped) this.#context.events.failed(error)
      throw error
    } finally {
      this.#starting = undefined
    }
  }

  #began(instance: Broker): void {
    this.#broker = instance
    this.#idleTimer = setInterval(() => this.#stopIfIdle(), this.#context.idleMs)
    this.#idleTimer.unref()
    this.#context.events.statusChanged()
    this.#hasCopy = instance.follow === undefined
    this.#starters.goAll(instance)
    if (this.#hasCopy) this.#readers.goAll(instance)
    else if (this.#bindCount > 0 || !this.#readers.isEmpty) this.#follow(instance)
  }

  /** If it fails, the calls that wait get the error. The next call tries again. */
  #follow(instance: Broker): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    const isCurrent = () => this.#broker === instance
    this.#context.gate
      .run(async () => await instance.follow?.())
      .then(
        () => {
          if (!isCurrent()) return
          this.#isFollowing = false
          this.#hasCopy = true
          this.#readers.goAll(instance)
        },
        (error: unknown) => {
          if (!isCurrent()) return
          this.#isFollowing = false
          this.#readers.failAll(error)
        },
      )
  }

  #failAll(error: unknown): void {
    this.#starters.failAll(error)
    this.#readers.failAll(error)
  }

  /**
   * The first start brings the log from its beginning: nobody listens yet, and those who wait read it afterwards. So what
   * comes before the copy is complete is not delivered.
   */
  #sinkOf(instance: Broker): BrokerSink {
    const { events } = this.#context
    const isCurrent = () => this.#broker === instance
    return {
      deliver: (message) => isCurrent() && events.deliver(this.taggedMessage(message)),
      status: (status, cause) => {
        if (this.#instance !== instance) return
        this.#status = status
        this.#statusCause = cause
        if (isCurrent()) events.statusChanged()
      },
      gap: (reason, isAffected) => {
        if (isCurrent()) events.gap(reason, isAffected)
      },
      refused: (message) => {
        if (isCurrent()) events.refused(message)
      },
    }
  }

  #stopIfIdle(): void {
    const [isRead, isUsed] = [this.#wasRead || this.#bindCount > 0, this.#wasUsed]
    this.#wasRead = false
    this.#wasUsed = false
    const broker = this.#broker
    if (broker === undefined || isRead || this.#isFollowing) return
    if (!isUsed && broker.stats().pendingCount === 0) this.#retire()
    else if (broker.unfollow !== undefined && this.#hasCopy) {
      this.#hasCopy = false
      broker.unfollow()
    }
  }

  /** The instance ends. What it still answers counts; it delivers nothing any more. */
  #retire(limitMs?: number): void {
    const instance = this.#instance
    if (instance === undefined) return
    clearInterval(this.#idleTimer)
    this.#instance = undefined
    this.#broker = undefined
    this.#hasCopy = false
    this.#isFollowing = false
    this.#status = 'down'
    this.#statusCause = undefined
    const { events } = this.#context
    const stopped = instance
      .stop(limitMs)
      .catch((error: unknown) => events.failed(error))
      .then(() => {
        this.#stopping.delete(stopped)
        events.retired(instance.stats())
      })
    this.#stopping.add(stopped)
    events.statusChanged()
  }
}
