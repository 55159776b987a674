import { isId } from 'webmq-client/protocol'

/**
 * The format of messages between nodes. A node reads this format alone, and counts messages of others. A later format
 * keeps the first bytes: format, flags, length of the sender's name. Then come the index of the part and the name.
 */
export const NODE_FORMAT = 1

/** Members of a message that were not checked. */
export type Fields = Readonly<Record<string, unknown>>

export interface NodeMessage {
  readonly node: string
  /** What it is about: the nodes themselves, a shared table, or a protocol of its own. */
  readonly topic: string
  readonly kind: string
  readonly fields: Fields
  /** A view, valid until the receiver has returned. */
  readonly payload: Buffer
}

export interface MessagePart {
  readonly format: number
  readonly node: string
  /** Of the part within its message, from 0. */
  readonly index: number
  readonly hasMore: boolean
  readonly content: Buffer
}

const HEAD_BYTES = 5
const INDEX_AT = 3
const NEWLINE = 0x0a
const MORE = 1

export function partHeadBytes(node: string): number {
  return HEAD_BYTES + node.length
}

/** @param node An id: one byte per character. */
export function encodePart(node: string, content: Uint8Array, hasMore: boolean, index = 0): Buffer {
  const head = Buffer.from([NODE_FORMAT, hasMore ? MORE : 0, node.length, index >> 8, index & 0xff])
  return Buffer.concat([head, Buffer.from(node, 'latin1'), content])
}

/** Reads a part; `undefined` when it is malformed. Its content is a view. */
export function decodePart(payload: Uint8Array): MessagePart | undefined {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  if (bytes.length < HEAD_BYTES) return undefined
  const [format = 0, flags = 0, length = 0] = bytes
  const node = bytes.toString('latin1', HEAD_BYTES, HEAD_BYTES + length)
  if (!isId(node)) return undefined
  return {
    format,
    node,
    index: bytes.readUInt16BE(INDEX_AT),
    hasMore: (flags & MORE) !== 0,
    content: bytes.subarray(HEAD_BYTES + length),
  }
}

/** One line of text, `topic kind {…}`, and the payload behind it. @param fields JSON. */
export function encodeContent(topic: string, kind: string, fields: string, payload?: Uint8Array): Buffer {
  const line = Buffer.from(`${topic} ${kind} ${fields}\n`)
  return payload === undefined || payload.length === 0 ? line : Buffer.concat([line, payload])
}

/** Reads the content of all parts; `undefined` when it is malformed. */
export function decodeContent(node: string, content: Buffer): NodeMessage | undefined {
  const end = content.indexOf(NEWLINE)
  if (end < 0) return undefined
  const [, topic = '', kind = '', json = ''] =
    /^([a-z]+) ([a-z]+) (\{.*\})$/s.exec(content.toString('utf8', 0, end)) ?? []
  try {
    return { node, topic, kind, fields: JSON.parse(json) as Fields, payload: content.subarray(end + 1) }
  } catch {
    // Of another program, or cut: the caller counts it.
    return undefined
  }
}

/** Whether a member of a message is a whole number from 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** All items or none: one malformed item discards the whole message. */
export function listOf<T>(
  list: unknown,
  maxCount: number,
  read: (item: unknown) => T | undefined,
): readonly T[] | undefined {
  if (!Array.isArray(list) || list.length > maxCount) return undefined
  const items: T[] = []
  for (const item of list) {
    const value = read(item)
    if (value === undefined) return undefined
    items.push(value)
  }
  return items
}
