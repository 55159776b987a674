import type { ConsumeMessage, Options } from 'amqplib'

/**
 * What nodes write into the log besides messages, straight to its queue. It takes an offset, and no listener gets it.
 * Each record says something about the epoch (see {@link LogEpoch}).
 */
export interface EpochRecord {
  /** Different for every record. */
  readonly nonce: string
  /** Unix time in milliseconds. */
  readonly timeMs: number
  /** The epoch, from a node that knows it. */
  readonly epoch?: string | undefined
  /** The epoch if no earlier record or message names one. From a node that may not know it. */
  readonly candidate?: string | undefined
  /** An epoch that has ended: the node has seen what the log no longer has. The candidate follows it. */
  readonly denies?: string | undefined
}

const TYPE = 'webmq-mark'

/** Properties of the message that carries a record. */
export const EPOCH_RECORD_PROPERTIES: Options.Publish = {
  type: TYPE,
  contentType: 'application/json',
  persistent: true,
}

export function encodeEpochRecord(record: EpochRecord): Buffer {
  return Buffer.from(JSON.stringify(record))
}

/** The record that a message carries; `undefined` if it is something else. */
export function decodeEpochRecord({ fields, properties, content }: ConsumeMessage): EpochRecord | undefined {
  if (fields.exchange !== '' || properties.type !== TYPE) return undefined
  let value: unknown
  try {
    value = JSON.parse(content.toString())
  } catch {
    // The parser has no other way to say it.
    return undefined
  }
  return isEpochRecord(value) ? value : undefined
}

function isEpochRecord(value: unknown): value is EpochRecord {
  if (typeof value !== 'object' || value === null) return false
  const { nonce, timeMs, epoch, candidate, denies } = value as Record<keyof EpochRecord, unknown>
  return (
    typeof nonce === 'string' &&
    Number.isSafeInteger(timeMs) &&
    [epoch, candidate, denies].every((name) => name === undefined || isEpoch(name))
  )
}

function isEpoch(value: unknown): boolean {
  return typeof value === 'string' && /^[\w-]{6,16}$/.test(value)
}
