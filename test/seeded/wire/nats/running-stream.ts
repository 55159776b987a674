import type { ConsumerConfig, ConsumerContext, ModelConsumer } from './consumer.js'
import type { ModelCore, ModelSubscriber } from './core.js'
import { Lane } from './lane.js'
import { type NatsMessage, NO_BYTES } from './protocol.js'
import { PullConsumer } from './pull-consumer.js'
import { PushConsumer } from './push-consumer.js'
import type { ModelStream, StreamConfig } from './stream.js'

/** A stream with its consumers, while the server runs. */
export class RunningStream {
  readonly stream: ModelStream
  readonly consumers = new Map<string, ModelConsumer>()
  readonly #core: ModelCore
  readonly #isSilent: () => boolean
  readonly #stores: Lane
  readonly #acknowledges: Lane
  readonly #subscribers: ModelSubscriber[] = []

  constructor(stream: ModelStream, core: ModelCore, isSilent: () => boolean) {
    this.stream = stream
    this.#core = core
    this.#isSilent = isSilent
    this.#stores = new Lane(() => core.options.delayMs('store'))
    this.#acknowledges = new Lane(() => core.options.delayMs('acknowledge'))
    stream.trim()
    this.#subscribe()
  }

  update(config: StreamConfig): void {
    this.#unsubscribe()
    this.stream.config = config
    this.stream.trim()
    this.#subscribe()
  }

  addConsumer(name: string, config: ConsumerConfig): ModelConsumer {
    const context: ConsumerContext = {
      core: this.#core,
      stream: this.stream,
      isSilent: this.#isSilent,
      expire: (expired) => this.deleteConsumer(expired.name),
    }
    const Kind = config.deliver_subject === undefined ? PullConsumer : PushConsumer
    const consumer = new Kind(name, config, context)
    this.consumers.set(name, consumer)
    return consumer
  }

  /** @returns whether it was there */
  deleteConsumer(name: string): boolean {
    const consumer = this.consumers.get(name)
    if (consumer instanceof PullConsumer) consumer.delete()
    else consumer?.stop()
    return this.consumers.delete(name)
  }

  /** The server has ended, or the stream. */
  stop(): void {
    this.#unsubscribe()
    this.#stores.clear()
    this.#acknowledges.clear()
    this.stream.stop()
    for (const consumer of this.consumers.values()) consumer.stop()
  }

  wake(): void {
    for (const consumer of this.consumers.values()) consumer.wake()
  }

  #subscribe(): void {
    for (const pattern of this.stream.config.subjects) {
      const subscriber = { pattern, take: (message: NatsMessage) => this.#take(message) }
      this.#subscribers.push(subscriber)
      this.#core.subscribers.add(subscriber)
    }
  }

  #unsubscribe(): void {
    for (const subscriber of this.#subscribers.splice(0)) this.#core.subscribers.delete(subscriber)
  }

  #take(message: NatsMessage): void {
    if (this.#isSilent()) return
    this.#stores.push(() => {
      if (this.#isSilent()) return
      const outcome = this.stream.store(message)
      if (message.reply !== '') this.#acknowledges.push(() => this.#answer(message.reply, outcome))
      this.wake()
    })
  }

  #answer(reply: string, outcome: ReturnType<ModelStream['store']>): void {
    const { name } = this.stream.config
    const text =
      'error' in outcome
        ? JSON.stringify({ error: outcome.error, stream: name, seq: 0 })
        : `{"stream":"${name}", "seq":${outcome.sequence}${outcome.isDuplicate ? ',"duplicate": true' : ''}}`
    this.#core.publish({ subject: reply, reply: '', headers: NO_BYTES, payload: Buffer.from(text) })
  }
}
