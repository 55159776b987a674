import { isUtf8 } from 'node:buffer'
import { isGroup, isId, isKey, isMessageId, isPattern } from 'webmq-client/protocol'
import type { SlotKind, SlotName } from './group-message.js'

/** The members that a node has of one queue group. */
export interface SlotEntry extends SlotName {
  /** 0: none any more. */
  readonly count: number
}

/** A message between nodes. `node` is the sender. */
export type GroupNodeMessage =
  /** To all: the sender is alive and its table has this version. */
  | {
      readonly kind: 'lease'
      readonly node: string
      readonly version: number
      /** Every node answers with its table. */
      readonly asks: boolean
    }
  /** To one node: send me your table. */
  | { readonly kind: 'want'; readonly node: string }
  /** To one node: a part of the sender's table. The first part replaces what is known. */
  | {
      readonly kind: 'table'
      readonly node: string
      readonly version: number
      readonly isFirst: boolean
      readonly isLast: boolean
      readonly entries: readonly SlotEntry[]
      /** Other nodes that the sender knows, with the first part. */
      readonly peers: readonly string[]
    }
  /** To all: the entries that make this version of the one before. */
  | {
      readonly kind: 'change'
      readonly node: string
      readonly version: number
      readonly entries: readonly SlotEntry[]
    }
  /** To one node: its table is known up to this version. */
  | { readonly kind: 'seen'; readonly node: string; readonly version: number }
  /** To all: the sender stops. */
  | { readonly kind: 'bye'; readonly node: string }
  /** To one node: a message for one of its members. It answers with `taken`. */
  | {
      readonly kind: 'task'
      readonly node: string
      readonly number: number
      readonly name: SlotName
      readonly key: string
      readonly isBinary: boolean
      readonly messageId: string | undefined
      /** Present for a request: it is answered with `reply` within this time. */
      readonly withinMs: number | undefined
      readonly payload: Uint8Array
    }
  /** To one node: the tasks with these numbers have been handed to a member, or there was none. */
  | {
      readonly kind: 'taken'
      readonly node: string
      readonly taken: readonly number[]
      readonly refused: readonly number[]
    }
  /** To one node: the reply to a request that was a task with this number. */
  | {
      readonly kind: 'reply'
      readonly node: string
      readonly number: number
      readonly isBinary: boolean
      readonly isError: boolean
      readonly payload: Uint8Array
    }

/** A header whose members have not been checked. */
interface Head {
  readonly kind?: unknown
  readonly node?: unknown
  readonly version?: unknown
  readonly number?: unknown
  readonly asks?: unknown
  readonly isFirst?: unknown
  readonly isLast?: unknown
  readonly entries?: unknown
  readonly peers?: unknown
  readonly name?: unknown
  readonly key?: unknown
  readonly messageId?: unknown
  readonly withinMs?: unknown
  readonly isBinary?: unknown
  readonly isError?: unknown
  readonly taken?: unknown
  readonly refused?: unknown
}

const NEWLINE = 0x0a
const NO_BYTES = new Uint8Array(0)
/** Most entries of a message; a table of more goes in parts. */
export const MAX_ENTRIES = 200
const MAX_PEERS = 1_024
const MAX_NUMBERS = 4_096

/** JSON, then, after a line end, the payload of a task or a reply. */
export function encodeGroupMessage(message: GroupNodeMessage): Buffer {
  switch (message.kind) {
    case 'task': {
      const { payload, name, ...head } = message
      return joined({ ...head, name: packed(name) }, payload)
    }
    case 'reply': {
      const { payload, ...head } = message
      return joined(head, payload)
    }
    case 'table':
    case 'change':
      return joined({ ...message, entries: message.entries.map((entry) => [...packed(entry), entry.count]) }, NO_BYTES)
    default:
      return joined(message, NO_BYTES)
  }
}

function joined(head: object, payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), payload])
}

function packed({ kind, group, pattern }: SlotName): readonly string[] {
  return [kind, group, pattern]
}

/** Reads a message of a node; `undefined` when it is malformed or of a newer format. Its payload is a view. */
export function decodeGroupMessage(bytes: Buffer): GroupNodeMessage | undefined {
  const newline = bytes.indexOf(NEWLINE)
  if (newline < 0) return undefined
  let head: Head
  try {
    head = Object(JSON.parse(bytes.toString('utf8', 0, newline)))
  } catch {
    // Of another program, or cut: the caller counts it.
    return undefined
  }
  const payload = bytes.subarray(newline + 1)
  const { kind, node, version, number, isFirst, isLast, isError, asks } = head
  if (typeof node !== 'string' || !isId(node)) return undefined
  switch (kind) {
    case 'lease':
      return isCount(version) ? { kind, node, version, asks: asks === true } : undefined
    case 'want':
    case 'bye':
      return { kind, node }
    case 'seen':
      return isCount(version) ? { kind, node, version } : undefined
    case 'change': {
      const entries = listOf(head.entries, MAX_ENTRIES, entryOf)
      return isCount(version) && entries ? { kind, node, version, entries } : undefined
    }
    case 'table': {
      const entries = listOf(head.entries, MAX_ENTRIES, entryOf)
      const peers = listOf(head.peers, MAX_PEERS, (name) => (typeof name === 'string' && isId(name) ? name : undefined))
      if (!isCount(version) || entries === undefined || peers === undefined) return undefined
      return { kind, node, version, entries, peers, isFirst: isFirst === true, isLast: isLast === true }
    }
    case 'task': {
      const name = nameOf(head.name)
      const { key, messageId, withinMs } = head
      if (name === undefined || !isCount(number) || typeof key !== 'string' || !isKey(key)) return undefined
      if (messageId !== undefined && !(typeof messageId === 'string' && isMessageId(messageId))) return undefined
      if (withinMs !== undefined && !isCount(withinMs)) return undefined
      const isBinary = isBinaryPayload(head, payload)
      return { kind, node, number, name, key, isBinary, messageId, withinMs, payload }
    }
    case 'taken': {
      const taken = listOf(head.taken, MAX_NUMBERS, countOf)
      const refused = listOf(head.refused, MAX_NUMBERS, countOf)
      return taken && refused ? { kind, node, taken, refused } : undefined
    }
    case 'reply': {
      if (!isCount(number)) return undefined
      return {
        kind,
        node,
        number,
        isBinary: isBinaryPayload(head, payload),
        isError: isError === true,
        payload,
      }
    }
    default:
      return undefined
  }
}

/** A text frame that is not UTF-8 would end the connection of its receiver. */
function isBinaryPayload(head: Head, payload: Uint8Array): boolean {
  return head.isBinary === true || !isUtf8(payload)
}

function entryOf(item: unknown): SlotEntry | undefined {
  const name = nameOf(item)
  const count = Array.isArray(item) ? item[3] : undefined
  return name !== undefined && isCount(count) ? { ...name, count } : undefined
}

function nameOf(item: unknown): SlotName | undefined {
  if (!Array.isArray(item)) return undefined
  const [kind, group, pattern] = item as unknown[]
  if (!isKind(kind) || typeof group !== 'string' || !isGroup(group)) return undefined
  if (typeof pattern !== 'string' || !isPattern(pattern)) return undefined
  return { kind, group, pattern }
}

function isKind(value: unknown): value is SlotKind {
  return value === 'listen' || value === 'respond'
}

/** All items or none: one malformed item discards the whole message. */
function listOf<T>(list: unknown, maxCount: number, read: (item: unknown) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(list) || list.length > maxCount) return undefined
  const items: T[] = []
  for (const item of list) {
    const value = read(item)
    if (value === undefined) return undefined
    items.push(value)
  }
  return items
}

function countOf(value: unknown): number | undefined {
  return isCount(value) ? value : undefined
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
