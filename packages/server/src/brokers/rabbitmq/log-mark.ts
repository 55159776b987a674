import type { ConsumeMessage, Options } from 'amqplib/callback_api'

/**
 * What nodes write into the log beside messages, straight to its queue: it takes a place, and nobody is given it. Each says something about the
 * epoch (see {@link LogLife}).
 */
export interface LogMark {
  /** Different for every mark. */
  readonly nonce: string
  /** Unix time in milliseconds. */
  readonly timeMs: number
  /** The epoch, by a node that knows it. */
  readonly epoch?: string | undefined
  /** By a node that may not know it: the epoch, if this is the first that is said of one. */
  readonly candidate?: string | undefined
  /** An epoch that is over: the node has seen what the log no longer has. The candidate begins, if it was not over before. */
  readonly denies?: string | undefined
}

const TYPE = 'webmq-mark'

/** Properties of the message that is a mark. */
export const MARK_PROPERTIES: Options.Publish = { type: TYPE, contentType: 'application/json', persistent: true }

export function encodeMark(mark: LogMark): Buffer {
  return Buffer.from(JSON.stringify(mark))
}

/** The mark that a message is; `undefined` when it is something else. */
export function decodeMark({ fields, properties, content }: ConsumeMessage): LogMark | undefined {
  if (fields.exchange !== '' || properties.type !== TYPE) return undefined
  let value: unknown
  try {
    value = JSON.parse(content.toString())
  } catch {
    // The parser has no other way to say it.
    return undefined
  }
  return isMark(value) ? value : undefined
}

function isMark(value: unknown): value is LogMark {
  if (typeof value !== 'object' || value === null) return false
  const { nonce, timeMs, epoch, candidate, denies } = value as Record<keyof LogMark, unknown>
  return (
    typeof nonce === 'string' &&
    Number.isSafeInteger(timeMs) &&
    [epoch, candidate, denies].every((name) => name === undefined || isEpoch(name))
  )
}

function isEpoch(value: unknown): boolean {
  return typeof value === 'string' && /^[\da-f]{16}$/.test(value)
}
