import { randomBytes } from 'node:crypto'
import type { Channel } from 'amqplib'
import { type AmqpConnection, watchChannel } from './connection.js'
import { EPOCH_RECORD_PROPERTIES, type EpochRecord, encodeEpochRecord } from './epoch-record.js'
import { readLog } from './log-consumer.js'
import type { LogRecord } from './log-record.js'

const NONCE_BYTES = 8

/** What a record says, besides what every record says. */
export type EpochStatement = Pick<EpochRecord, 'epoch' | 'candidate' | 'denies'>

/** Writes epoch records into the log. */
export class EpochWriter {
  readonly #channel: Channel
  readonly #consuming: AmqpConnection
  readonly #queue: string
  readonly #lost: (cause: Error) => void

  static async open(
    publishing: AmqpConnection,
    consuming: AmqpConnection,
    queue: string,
    lost: (cause: Error) => void,
  ): Promise<EpochWriter> {
    return new EpochWriter(await publishing.openChannel(), consuming, queue, lost)
  }

  private constructor(channel: Channel, consuming: AmqpConnection, queue: string, lost: (cause: Error) => void) {
    this.#channel = channel
    this.#consuming = consuming
    this.#queue = queue
    this.#lost = lost
    watchChannel(channel, lost)
    channel.on('return', () => lost(new Error('the log is gone')))
  }

  /** Writes a record, without waiting for it; returns its nonce. */
  write(statement: EpochStatement): string {
    const nonce = randomBytes(NONCE_BYTES).toString('hex')
    const record = encodeEpochRecord({ nonce, timeMs: Date.now(), ...statement })
    this.#channel.sendToQueue(this.#queue, record, { ...EPOCH_RECORD_PROPERTIES, mandatory: true })
    return nonce
  }

  /** Writes a record; resolves to its offset in the queue. What the broker accepted before the call stands before it. */
  writeAndLocate(statement: EpochStatement): Promise<number> {
    let nonce: string | undefined
    const read = { connection: this.#consuming, queue: this.#queue, lost: this.#lost }
    const find = ({ epochRecord, offset }: LogRecord) =>
      nonce !== undefined && epochRecord?.nonce === nonce ? offset : undefined
    return readLog(read, 'next', find, () => {
      nonce = this.write(statement)
    })
  }
}
