import type { InboundMessage, OutboundMessage } from '../../ports/broker.js'

/*
 * For each message, in order: flags (1 byte, bit 0: binary), length of the payload (2 bytes, big-endian), the payload.
 */
const IS_BINARY = 1
const HEAD_BYTES = 3
/** A larger payload goes by itself: its own head is nothing beside it. */
const MAX_BUNDLED_PAYLOAD_BYTES = 4_096
/** A broker passes a bundle on as one message; larger ones would save nothing more. */
const MAX_BUNDLE_BYTES = 16_384

/** Where the run of messages ends that begins at `from` and may be one bundle: the same key, small, nothing of their own to be told. */
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

function isBundled({ payload, messageId, publisher }: OutboundMessage): boolean {
  return payload.length <= MAX_BUNDLED_PAYLOAD_BYTES && messageId === undefined && publisher === undefined
}

/** The payload that stands for a run of messages which {@link bundleEnd} has found; theirs are copied. */
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

/** The messages of a bundle, their payloads views of its bytes; `undefined` when it is not one. */
export function decodeBundle(key: string, bytes: Uint8Array): readonly InboundMessage[] | undefined {
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
