import type { InboundMessage, OutboundMessage } from '../../../kernel/ports/broker.js'

/*
 * A bundle is a run of messages. Each is: flags (1 byte, bit 0: binary), length of the payload (2 bytes, big-endian),
 * and the payload.
 */
const IS_BINARY = 1
const HEAD_BYTES = 3
/** A larger payload travels alone: its envelope is small beside it. */
const MAX_BUNDLED_PAYLOAD_BYTES = 4_096
/** A broker handles a bundle as one message; a larger bundle saves no more. */
const MAX_BUNDLE_BYTES = 16_384

/** End of the run of messages from `from` that fit into one bundle: same key, small, without an id, a publisher or attributes. */
export function bundleEnd(messages: readonly OutboundMessage[], from: number): number {
  const key = messages[from]?.key
  let byteCount = 0
  for (let at = from; at < messages.length; at++) {
    const message = messages[at]
    if (message === undefined || message.key !== key || !isBundled(message)) return at
    byteCount += HEAD_BYTES + message.payload.length
    if (byteCount > MAX_BUNDLE_BYTES) return at
  }
  return messages.length
}

function isBundled({ payload, messageId, publisher, attributes }: OutboundMessage): boolean {
  const isPlain = messageId === undefined && publisher === undefined && attributes === undefined
  return isPlain && payload.length <= MAX_BUNDLED_PAYLOAD_BYTES
}

/** Encodes the run that {@link bundleEnd} has found; copies the payloads. */
export function encodeBundle(messages: readonly OutboundMessage[], from: number, to: number): Uint8Array {
  let byteCount = 0
  for (let at = from; at < to; at++) byteCount += HEAD_BYTES + (messages[at]?.payload.length ?? 0)
  const bytes = Buffer.allocUnsafeSlow(byteCount)
  let end = 0
  for (let at = from; at < to; at++) {
    const { payload, isBinary } = messages[at] as OutboundMessage
    bytes[end] = isBinary ? IS_BINARY : 0
    bytes[end + 1] = payload.length >>> 8
    bytes[end + 2] = payload.length
    bytes.set(payload, end + HEAD_BYTES)
    end += HEAD_BYTES + payload.length
  }
  return bytes
}

/** Decodes a bundle; payloads are views of its bytes. `undefined` if it is not a bundle that a node has made. */
export function decodeBundle(key: string, bytes: Uint8Array): readonly InboundMessage[] | undefined {
  if (bytes.length > MAX_BUNDLE_BYTES) return undefined
  const messages: InboundMessage[] = []
  const { buffer, byteOffset, length } = bytes
  let at = 0
  while (at < length) {
    const start = at + HEAD_BYTES
    const payloadBytes = ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    const end = start + payloadBytes
    if (end > length) return undefined
    messages.push({
      key,
      payload: Buffer.from(buffer, byteOffset + start, payloadBytes),
      isBinary: ((bytes[at] ?? 0) & IS_BINARY) !== 0,
    })
    at = end
  }
  return messages
}
