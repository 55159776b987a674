import type { Accepted, InboundMessage, Position } from './broker.js'

/** A message for the sink of a broker. Members that are undefined are left out: `exactOptionalPropertyTypes`. */
export function inbound(
  {
    key,
    payload,
    isBinary,
    traceparent,
  }: Pick<InboundMessage, 'key' | 'payload' | 'isBinary'> & { readonly traceparent?: string | undefined },
  position: Position | undefined,
  publisher: number | undefined,
): InboundMessage {
  if (traceparent !== undefined) {
    return {
      key,
      payload,
      isBinary,
      ...(position === undefined ? undefined : { position }),
      ...(publisher === undefined ? undefined : { publisher }),
      traceparent,
    }
  }
  if (position === undefined)
    return publisher === undefined ? { key, payload, isBinary } : { key, payload, isBinary, publisher }
  return publisher === undefined
    ? { key, payload, isBinary, position }
    : { key, payload, isBinary, position, publisher }
}

/** The answer to a publish. */
export function accepted(position: Position | undefined, isDuplicate: boolean): Accepted {
  return position === undefined ? { isDuplicate } : { position, isDuplicate }
}
