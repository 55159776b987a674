import type { ConsumeMessage, Options } from 'amqplib'
import { fingerprintOfForeign, fingerprintOfSource, fingerprintOfText, type LinkDelivery } from 'webmq-server/brokers'
import { deliveryOf, keyOf } from './message-properties.js'

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
  /** An epoch whose restart mark is missing: nodes that have followed the log set it. */
  readonly asks?: string | undefined
}

const TYPE = 'webmq-mark'

export const EPOCH_RECORD_PROPERTIES: Options.Publish = {
  type: TYPE,
  contentType: 'application/json',
  persistent: true,
}

export function encodeEpochRecord(record: EpochRecord): Buffer {
  return Buffer.from(JSON.stringify(record))
}

/** The record that a message carries; `undefined` if it is something else. */
function decodeEpochRecord({ fields, properties, content }: ConsumeMessage): EpochRecord | undefined {
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
  const { nonce, timeMs, epoch, candidate, denies, asks } = value as Record<keyof EpochRecord, unknown>
  return (
    typeof nonce === 'string' &&
    Number.isSafeInteger(timeMs) &&
    [epoch, candidate, denies, asks].every((name) => name === undefined || isEpoch(name))
  )
}

function isEpoch(value: unknown): boolean {
  return typeof value === 'string' && /^[\w-]{6,16}$/.test(value)
}

/** Header of a node's message for the log: the epoch that the node knows, a dot, and the Unix time in milliseconds. */
export const LOG_HEADER = 'webmq-log'
/** RabbitMQ's own. */
const OFFSET_HEADER = 'x-stream-offset'

/** What a record of the log's queue holds. Offsets there begin at 0. */
export interface LogRecord {
  readonly offset: number
  /** Of what RabbitMQ stores of it. */
  readonly fingerprint: number
  /** When it was published; `undefined` for a message of another program. */
  readonly timeMs: number | undefined
  readonly epoch: string | undefined
  /** An epoch record, a message, or neither. */
  readonly epochRecord: EpochRecord | undefined
  readonly delivery: LinkDelivery | undefined
  /** Key of a record that is neither, if it is valid. */
  readonly malformedKey?: string | undefined
}

export function encodeLogHeader(epoch: string, timeMs: number): string {
  return `${epoch}.${timeMs}`
}

/** Reads what the log's queue has delivered; `undefined` if it is not from a stream. */
export function recordOf(message: ConsumeMessage): LogRecord | undefined {
  const { properties, fields } = message
  const headers: Readonly<Record<string, unknown>> = properties.headers ?? {}
  const offset = headers[OFFSET_HEADER]
  if (typeof offset !== 'number') return undefined
  const epochRecord = decodeEpochRecord(message)
  if (epochRecord !== undefined) {
    const { nonce, timeMs, epoch } = epochRecord
    return { offset, fingerprint: fingerprintOfText(nonce), timeMs, epoch, epochRecord, delivery: undefined }
  }
  // A message that was sent straight to the queue has no key.
  const delivery = fields.exchange === '' ? undefined : deliveryOf(message)
  const own = delivery?.source === undefined ? undefined : decodeLogHeader(headers[LOG_HEADER])
  const malformedKey = delivery === undefined ? keyOf(message) : undefined
  const fingerprint =
    delivery?.source === undefined ? fingerprintOf(message) : fingerprintOfSource(delivery.source, own?.timeMs ?? 0)
  return { offset, fingerprint, timeMs: own?.timeMs, epoch: own?.epoch, epochRecord: undefined, delivery, malformedKey }
}

/** AMQP tells no time unless the other program does. */
function fingerprintOf({ fields, properties, content }: ConsumeMessage): number {
  const { messageId, timestamp } = properties as { readonly messageId?: unknown; readonly timestamp?: unknown }
  return fingerprintOfForeign({
    key: fields.routingKey,
    messageId: typeof messageId === 'string' ? messageId : undefined,
    payload: content,
    timeMs: typeof timestamp === 'number' ? timestamp : 0,
  })
}

/** The header that was read last: all messages of a node and a millisecond have the same one. */
let lastHeader: { readonly text: string; readonly epoch: string; readonly timeMs: number } | undefined

function decodeLogHeader(value: unknown): { readonly epoch: string; readonly timeMs: number } | undefined {
  if (value === lastHeader?.text) return lastHeader
  const [text, epoch, timeMs] = typeof value === 'string' ? (/^([\w-]{6,16})\.(\d{13})$/.exec(value) ?? []) : []
  if (text === undefined || epoch === undefined) return undefined
  lastHeader = { text, epoch, timeMs: Number(timeMs) }
  return lastHeader
}
