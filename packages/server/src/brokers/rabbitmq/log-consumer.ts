import type { Channel, ConsumeMessage } from 'amqplib/callback_api'
import { Acks, PREFETCH_COUNT } from './acks.js'
import { type AmqpConnection, called, numberOf, watchChannel } from './amqp-connection.js'
import { DeliveryReader, type DeliveryReaderOptions } from './delivery-reader.js'
import { type LogRecord, recordOf } from './log-record.js'
import { SourceReader } from './message-properties.js'

/** What a {@link LogConsumer} reads. */
export interface LogConsumerOptions {
  readonly queue: string
  /** Where to begin: an offset of the queue, the oldest there is, or what comes from now on. */
  readonly from: number | 'first' | 'next'
  readonly take: (record: LogRecord) => void
  /** Takes messages of nodes without a detour; `take` gets the rest. Without it `take` gets everything. */
  readonly takeOwn?: DeliveryReaderOptions['take']
  /** Nothing more comes. Not told when it was closed. */
  readonly lost: (cause: Error) => void
}

const TAG = 'log'

/** Reads the queue that is the log, on a channel of its own, from some place on. */
export class LogConsumer {
  readonly #channel: Channel
  readonly #acks: Acks
  #isClosed = false

  /** Resolves when the broker has taken it: what is written from then on comes. */
  static async open(connection: AmqpConnection, options: LogConsumerOptions): Promise<LogConsumer> {
    const channel = await connection.openChannel()
    const consumer = new LogConsumer(channel, options.lost)
    await called((done) => channel.prefetch(PREFETCH_COUNT, false, done))
    const sources = new SourceReader()
    const { takeOwn } = options
    if (takeOwn !== undefined) {
      const take: DeliveryReaderOptions['take'] = (deliveryTag, delivery, logged) => {
        if (consumer.#isClosed) return
        consumer.#acks.add(deliveryTag)
        takeOwn(deliveryTag, delivery, logged)
      }
      const channelNumber = numberOf(channel)
      connection.readFirst(new DeliveryReader({ channel: channelNumber, consumerTag: TAG, sources, take, isLog: true }))
    }
    const takeAny = (message: ConsumeMessage | null) => consumer.#takeAny(message, sources, options)
    const args = { 'x-stream-offset': options.from }
    await called((done) => channel.consume(options.queue, takeAny, { consumerTag: TAG, arguments: args }, done))
    return consumer
  }

  private constructor(channel: Channel, lost: (cause: Error) => void) {
    this.#channel = channel
    this.#acks = new Acks(channel)
    watchChannel(channel, (cause) => {
      if (!this.#isClosed) lost(cause)
    })
  }

  /** Takes nothing more, at once. */
  stop(): void {
    this.#isClosed = true
    this.#acks.stop()
  }

  /** The same, and ends it at the broker, without waiting for that. */
  close(): void {
    if (this.#isClosed) return
    this.stop()
    // Without an answer the connection ends, and with it the channel.
    this.#channel.close(() => undefined)
  }

  #takeAny(message: ConsumeMessage | null, sources: SourceReader, { take, lost, queue }: LogConsumerOptions): void {
    if (this.#isClosed) return
    if (message === null) {
      lost(new Error('the log was deleted'))
      return
    }
    this.#acks.add(message.fields.deliveryTag)
    const record = recordOf(message, sources)
    if (record === undefined) lost(new Error(`the queue ${queue} is there and is no stream`))
    else take(record)
  }
}
