import type { Channel, ConsumeMessage } from 'amqplib'
import { deferred, LogRestart } from 'webmq-server/brokers'
import { Acks, type AmqpConnection, closeChannel, PREFETCH_COUNT, watchChannel } from './connection.js'
import { LogEpoch } from './log-epoch.js'
import { type LogRecord, recordOf } from './log-record.js'

export interface LogConsumerOptions {
  readonly queue: string
  /** Where to begin: an offset of the queue, the oldest record, or whatever is written from now on. */
  readonly from: number | 'first' | 'next'
  readonly take: (record: LogRecord) => void
  /** Nothing more comes. Not called after `close`. */
  readonly lost: (cause: Error) => void
}

/** Reads the queue that is the log, on a channel of its own. */
export class LogConsumer {
  readonly #channel: Channel
  readonly #options: LogConsumerOptions
  readonly #acks: Acks
  #isClosed = false

  /** Resolves when the broker has started it: what is written from then on comes. */
  static async open(connection: AmqpConnection, options: LogConsumerOptions): Promise<LogConsumer> {
    const channel = await connection.model.createChannel()
    const consumer = new LogConsumer(channel, options)
    await channel.prefetch(PREFETCH_COUNT)
    const args = { 'x-stream-offset': options.from }
    await channel.consume(options.queue, (message) => consumer.#take(message), { arguments: args })
    return consumer
  }

  private constructor(channel: Channel, options: LogConsumerOptions) {
    this.#channel = channel
    this.#options = options
    this.#acks = new Acks(channel)
    watchChannel(channel, (cause) => {
      // An acknowledgement on a closed channel throws, from a timer.
      this.#acks.stop()
      if (!this.#isClosed) options.lost(cause)
    })
  }

  stop(): void {
    this.#isClosed = true
    this.#acks.stop()
  }

  /** The same, and ends it at the broker, without waiting for that. */
  close(): void {
    if (this.#isClosed) return
    this.stop()
    closeChannel(this.#channel)
  }

  #take(message: ConsumeMessage | null): void {
    if (this.#isClosed) return
    const { queue, take, lost } = this.#options
    if (message === null) {
      lost(new LogRestart('the log was deleted'))
      return
    }
    this.#acks.add(message)
    const record = recordOf(message)
    if (record === undefined) lost(new Error(`the queue ${queue} is there and is no stream`))
    else take(record)
  }
}

export type LogReadOptions = Pick<LogConsumerOptions, 'queue' | 'lost'> & { readonly connection: AmqpConnection }

/**
 * Reads the log until `find` has found something, and resolves to it.
 * @param started Called when the broker has started: what is written from then on comes.
 */
export function readLog<T>(
  { connection, queue, lost }: LogReadOptions,
  from: LogConsumerOptions['from'],
  find: (record: LogRecord) => T | undefined,
  started?: () => void,
): Promise<T> {
  const { promise, resolve, reject } = deferred<T>()
  let isFound = false
  const take = (record: LogRecord) => {
    const found = isFound ? undefined : find(record)
    if (found === undefined) return
    isFound = true
    resolve(found)
    opening.then((consumer) => consumer.close()).catch(reject)
  }
  const opening = LogConsumer.open(connection, { queue, from, take, lost })
  opening.then(started).catch(reject)
  return promise
}

export interface LogBeginning {
  readonly epoch: LogEpoch
  readonly timeMs: number
}

/**
 * Reads the log from its beginning to find its epoch.
 * @param toOffset Offset of an epoch record with a candidate: reading ends there at the latest.
 * @param isThorough Whether reading goes up to there in any case, to find denials.
 */
export function scanLog(options: LogReadOptions, toOffset: number, isThorough: boolean): Promise<LogBeginning> {
  let found: LogEpoch | undefined
  let firstTimeMs: number | undefined
  return readLog(options, 'first', ({ offset, timeMs, epochRecord, epoch }) => {
    found ??= new LogEpoch(offset)
    firstTimeMs ??= timeMs
    if (epochRecord !== undefined) found.recorded(epochRecord, offset)
    else if (epoch !== undefined) found.named(epoch)
    const isOver = offset >= toOffset || (found.isKnown && firstTimeMs !== undefined && !isThorough)
    return isOver ? { epoch: found, timeMs: firstTimeMs ?? Date.now() } : undefined
  })
}
