import type { Accepted, InboundMessage, Position } from './broker.js'

/** A message for the sink of a broker. Members that are undefined are left out: `exactOptionalPropertyTypes`. */
export function inbound(
  { key, payload, isBinary }: Pick<InboundMessage, 'key' | 'payload' | 'isBinary'>,
  position: Position | undefined,
  origin: number | undefined,
): InboundMessage {
  if (position === undefined)
    return origin === undefined ? { key, payload, isBinary } : { key, payload, isBinary, origin }
  return origin === undefined ? { key, payload, isBinary, position } : { key, payload, isBinary, position, origin }
}

/** The answer to a publish. */
export function accepted(position: Position | undefined, isDuplicate: boolean): Accepted {
  return position === undefined ? { isDuplicate } : { position, isDuplicate }
}
