import { randomBytes } from 'node:crypto'
import type { Channel } from 'amqplib'
import { newEpoch } from 'webmq-server/brokers'
import { type LogReadOptions, readLog } from './log-consumer.js'
import { EPOCH_RECORD_PROPERTIES, type EpochRecord, encodeEpochRecord, type LogRecord } from './log-record.js'

const NONCE_BYTES = 8

/** What an epoch record says, besides what every one says. */
type EpochStatement = Pick<EpochRecord, 'epoch' | 'candidate' | 'denies' | 'asks'>

export class EpochWriter {
  readonly #log: LogReadOptions
  readonly #channel: Channel
  /** Epochs that this node has begun: no client has a position from before. */
  readonly candidates = new Set<string>()

  constructor(log: LogReadOptions, channel: Channel) {
    this.#log = log
    this.#channel = channel
  }

  /** Writes a record, without waiting for it; returns its nonce. */
  write(statement: EpochStatement): string {
    const nonce = randomBytes(NONCE_BYTES).toString('hex')
    const record = encodeEpochRecord({ nonce, timeMs: Date.now(), ...statement })
    this.#channel.sendToQueue(this.#log.queue, record, { ...EPOCH_RECORD_PROPERTIES, mandatory: true })
    return nonce
  }

  /**
   * Writes a record with a new candidate; resolves to its offset in the queue. What the broker accepted before the call stands
   * before it.
   * @param denies The epoch that has ended.
   * @param isOwn Whether this node begins the epoch if nothing else names one.
   */
  locate(denies?: string, isOwn = true): Promise<number> {
    const candidate = newEpoch()
    if (isOwn) this.candidates.add(candidate)
    let nonce: string | undefined
    const find = ({ epochRecord, offset }: LogRecord) =>
      nonce !== undefined && epochRecord?.nonce === nonce ? offset : undefined
    return readLog(this.#log, 'next', find, () => {
      nonce = this.write({ candidate, denies })
    })
  }
}
