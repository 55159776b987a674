import { randomBytes } from 'node:crypto'
import { LONG_INTEGER, LONG_TEXT, shortText } from './frames.js'

/*
 * A message of a node that belongs into the log has one header, `webmq-log`: the epoch that the node knows, a dot, and when it was published, Unix time
 * in milliseconds. All of that has always the same length, so that it is written and read in place. RabbitMQ puts a header of its own behind it,
 * the offset.
 */
export const LOG_HEADER = 'webmq-log'
export const OFFSET_HEADER = 'x-stream-offset'

const EPOCH_BYTES = 8
const EPOCH_CHARS = EPOCH_BYTES * 2
/** From the year 2001 to 2286. */
export const TIME_CHARS = 13
const VALUE_CHARS = EPOCH_CHARS + 1 + TIME_CHARS
const LENGTH_BYTES = 4
const OFFSET_BYTES = 8

/** Names a new life of a log. */
export function newEpoch(): string {
  return randomBytes(EPOCH_BYTES).toString('hex')
}

/** The table of headers of a message for the log, as it is published: up to the time, for which there is room. */
export function logTable(epoch: string): Buffer {
  const entry = Buffer.concat([logEntryHead(), Buffer.from(`${epoch}.`.padEnd(VALUE_CHARS, '0'), 'latin1')])
  return Buffer.concat([lengthOf(entry.length), entry])
}

/** How the table begins that RabbitMQ delivers, up to the epoch. */
export const DELIVERED_HEAD = deliveredHead()
/** Of that table, from its beginning: where the time is, and the offset, which ends it. */
export const DELIVERED_TIME_AT = DELIVERED_HEAD.length + EPOCH_CHARS + 1
/** What stands between time and offset. */
export const OFFSET_HEAD = Buffer.concat([shortText(OFFSET_HEADER), Buffer.of(LONG_INTEGER)])
export const DELIVERED_OFFSET_AT = DELIVERED_TIME_AT + TIME_CHARS + OFFSET_HEAD.length
export const DELIVERED_BYTES = DELIVERED_OFFSET_AT + OFFSET_BYTES

/** What the header says, when it is one of ours. */
export function readLogHeader(value: unknown): { readonly epoch: string; readonly timeMs: number } | undefined {
  const [, epoch, timeMs] = typeof value === 'string' ? (/^([\da-f]{16})\.(\d{13})$/.exec(value) ?? []) : []
  return epoch === undefined ? undefined : { epoch, timeMs: Number(timeMs) }
}

function logEntryHead(): Buffer {
  return Buffer.concat([shortText(LOG_HEADER), Buffer.of(LONG_TEXT), lengthOf(VALUE_CHARS)])
}

function deliveredHead(): Buffer {
  const head = logEntryHead()
  const offsetEntryBytes = 1 + OFFSET_HEADER.length + 1 + OFFSET_BYTES
  return Buffer.concat([lengthOf(head.length + VALUE_CHARS + offsetEntryBytes), head])
}

function lengthOf(byteCount: number): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES)
  bytes.writeUInt32BE(byteCount)
  return bytes
}
