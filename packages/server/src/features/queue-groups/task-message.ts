import { isUtf8 } from 'node:buffer'
import { isGroup, isKey, isMessageId, isPattern } from 'webmq-client/protocol'
import { type Fields, isCount, listOf, type NodeMessage } from '../nodes/index.js'
import type { GroupKind, GroupName } from './group-message.js'

/** A message between two nodes about a message for a queue group. */
export type TaskMessage =
  /** A message for one of the receiver's members. It answers with `taken`. */
  | {
      readonly kind: 'task'
      readonly number: number
      readonly name: GroupName
      readonly key: string
      readonly isBinary: boolean
      readonly messageId: string | undefined
      /** Present for a request: it is answered with `reply` within this time. */
      readonly withinMs: number | undefined
      /** The term of the receiver, as the sender knows it. Missing from an older node, and while it is not known. */
      readonly term: number | undefined
      readonly payload: Uint8Array
    }
  /** The tasks with these numbers have been handed to a member, or there was none that takes them. */
  | {
      readonly kind: 'taken'
      readonly taken: readonly number[]
      readonly refused: readonly number[]
      /** Those of `refused` for which there are members that take no more at present. */
      readonly full?: readonly number[]
      /** Sent in a term of this node that is over; with its present one. */
      readonly late?: readonly number[]
      readonly term?: number
    }
  /** The reply to a request that was a task with this number. */
  | {
      readonly kind: 'reply'
      readonly number: number
      readonly isBinary: boolean
      readonly isError: boolean
      readonly payload: Uint8Array
    }

export type TaskMessageOf<K extends TaskMessage['kind']> = Extract<TaskMessage, { kind: K }>

const MAX_NUMBERS = 4_096

export function taskFields(message: TaskMessage): string {
  const name = message.kind === 'task' ? nameItem(message.name) : undefined
  return JSON.stringify({ ...message, kind: undefined, payload: undefined, name })
}

/** Reads a message; `undefined` when it is malformed. Its payload is a view. */
export function taskMessageFrom({ kind, fields, payload }: NodeMessage): TaskMessage | undefined {
  const { number, messageId, withinMs, key, term } = fields
  switch (kind) {
    case 'task': {
      const name = nameFrom(fields.name)
      if (name === undefined || !isCount(number) || typeof key !== 'string' || !isKey(key)) return undefined
      if (messageId !== undefined && !(typeof messageId === 'string' && isMessageId(messageId))) return undefined
      if (withinMs !== undefined && !isCount(withinMs)) return undefined
      if (term !== undefined && !isCount(term)) return undefined
      return { kind, number, name, key, isBinary: isBinaryPayload(fields, payload), messageId, withinMs, term, payload }
    }
    case 'taken': {
      const taken = listOf(fields.taken, MAX_NUMBERS, countFrom)
      const refused = listOf(fields.refused, MAX_NUMBERS, countFrom)
      const full = listOf(fields.full ?? [], MAX_NUMBERS, countFrom)
      const late = listOf(fields.late ?? [], MAX_NUMBERS, countFrom)
      if (!(taken && refused && full && late)) return undefined
      return { kind, taken, refused, full, late, ...(isCount(term) ? { term } : {}) }
    }
    case 'reply': {
      if (!isCount(number)) return undefined
      return { kind, number, isBinary: isBinaryPayload(fields, payload), isError: fields.isError === true, payload }
    }
    default:
      return undefined
  }
}

export function nameItem({ kind, group, pattern }: GroupName): readonly [string, string, string] {
  return [kind, group, pattern]
}

/** Reads the name of a queue group; `undefined` when it is malformed. */
export function nameFrom(item: unknown): GroupName | undefined {
  if (!Array.isArray(item)) return undefined
  const [kind, group, pattern] = item as unknown[]
  if (!isKind(kind) || typeof group !== 'string' || !isGroup(group)) return undefined
  if (typeof pattern !== 'string' || !isPattern(pattern)) return undefined
  return { kind, group, pattern }
}

function isKind(value: unknown): value is GroupKind {
  return value === 'listen' || value === 'respond'
}

/** A text frame that is not UTF-8 would end the connection of its receiver. */
function isBinaryPayload(fields: Fields, payload: Uint8Array): boolean {
  return fields.isBinary === true || !isUtf8(payload)
}

function countFrom(value: unknown): number | undefined {
  return isCount(value) ? value : undefined
}
