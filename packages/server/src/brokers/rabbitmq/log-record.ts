import type { ConsumeMessage } from 'amqplib/callback_api'
import { isKey } from 'webmq-client/protocol'
import type { LinkDelivery } from '../remote/link.js'
import { LOG_HEADER, OFFSET_HEADER, readLogHeader } from './log-header.js'
import { decodeMark, type LogMark } from './log-mark.js'
import { deliveryOf, type SourceReader } from './message-properties.js'

/** What stands at an offset of the log's queue, from 0. */
export interface LogRecord {
  readonly offset: number
  /** When it was published; `undefined` for a message that tells no time. */
  readonly timeMs: number | undefined
  /** The epoch that it names. */
  readonly epoch: string | undefined
  /** A mark, or a message, or neither. */
  readonly mark: LogMark | undefined
  readonly delivery: LinkDelivery | undefined
}

/** Reads what amqplib has read; `undefined` when it does not come from a stream. */
export function recordOf(message: ConsumeMessage, sources: SourceReader): LogRecord | undefined {
  const { properties, fields } = message
  const headers: Readonly<Record<string, unknown>> = properties.headers ?? {}
  const offset = headers[OFFSET_HEADER]
  if (typeof offset !== 'number') return undefined
  const mark = decodeMark(message)
  if (mark !== undefined) return { offset, timeMs: mark.timeMs, epoch: mark.epoch, mark, delivery: undefined }
  // What is sent straight to the queue was not published to a key.
  const delivery = fields.exchange === '' || !isKey(fields.routingKey) ? undefined : deliveryOf(message, sources)
  const own = delivery?.source === undefined ? undefined : readLogHeader(headers[LOG_HEADER])
  return { offset, timeMs: own?.timeMs, epoch: own?.epoch, mark: undefined, delivery }
}
