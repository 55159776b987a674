/** The parts of a `traceparent` (W3C Trace Context §3.2). */
export interface TraceParent {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string
  /** 16 hexadecimal digits in lower case, not all zero: the id of the parent span. */
  readonly spanId: string
  /** One byte; bit 0: sampled. */
  readonly traceFlags: number
}

/** A later version may append fields. We pass on the known ones alone, so nothing longer is read. */
const MAX_CHARS = 128
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/**
 * Reads a `traceparent` of a client. One that is not valid is ignored, as W3C Trace Context §4.3 asks, and so is one that
 * is longer than 128 characters.
 */
export function parseTraceparent(text: string): TraceParent | undefined {
  if (text.length > MAX_CHARS) return undefined
  const [, version, traceId = '', spanId = '', flags = '', rest] = FORM.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}

/** The text of version 00: 55 ASCII characters. */
export function formatTraceparent({ traceId, spanId, traceFlags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
}
