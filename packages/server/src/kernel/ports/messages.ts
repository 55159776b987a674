import type { MessageAttributes } from './attributes.js'
import type { Accepted, InboundMessage, Position } from './broker.js'

/** What a message says, wherever it is. */
export interface MessageContent {
  readonly key: string
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly attributes?: MessageAttributes | undefined
}

/** A message for the sink of a broker. Members that are undefined are left out: `exactOptionalPropertyTypes`. */
export function inbound(
  { key, payload, isBinary, attributes }: MessageContent,
  position: Position | undefined,
  publisher: number | undefined,
): InboundMessage {
  if (attributes !== undefined) {
    if (position === undefined)
      return publisher === undefined
        ? { key, payload, isBinary, attributes }
        : { key, payload, isBinary, publisher, attributes }
    return publisher === undefined
      ? { key, payload, isBinary, position, attributes }
      : { key, payload, isBinary, position, publisher, attributes }
  }
  if (position === undefined)
    return publisher === undefined ? { key, payload, isBinary } : { key, payload, isBinary, publisher }
  return publisher === undefined
    ? { key, payload, isBinary, position }
    : { key, payload, isBinary, position, publisher }
}

/** Characters of its key and of its attributes, for those who count the memory that it takes. */
export function textLengthOf({ key, attributes }: Pick<MessageContent, 'key' | 'attributes'>): number {
  if (attributes === undefined) return key.length
  const texts = [
    attributes.userId,
    attributes.id,
    attributes.traceparent,
    attributes.key,
    attributes.stream,
    attributes.owner,
  ]
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), key.length)
}

export function accepted(position: Position | undefined, isDuplicate: boolean): Accepted {
  return position === undefined ? { isDuplicate } : { position, isDuplicate }
}
