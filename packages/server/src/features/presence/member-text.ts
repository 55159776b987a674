import { isKey } from 'webmq-client/protocol'
import type { TableChange } from '../nodes/index.js'
import { memberOf } from './member.js'
import { addressOf, type Entry } from './members.js'

/** A member that a node no longer holds. */
export interface Departure {
  readonly key: string
  readonly id: string
  /** Ends all older entries of the member, on every node; 0 ends the sender's entry alone. */
  readonly stamp: number
}

/** What another node says of one member. `id` is its address. */
export interface MemberChange extends TableChange {
  readonly node: string
  /** `Departure`: the node no longer holds it. */
  readonly change: Entry | Departure
}

const MAX_MEMBER_ID_CHARS = 64

export function entryText({ key, stamp, member }: Entry): string {
  return `[${JSON.stringify(key)},${stamp},${member.json}]`
}

export function departureText({ key, id, stamp }: Departure): string {
  return `[${JSON.stringify(key)},${stamp},${JSON.stringify(id)}]`
}

/** Reads either text, parsed; `undefined` when it is malformed. */
export function memberChangeFrom(item: unknown, node: string): MemberChange | undefined {
  if (!Array.isArray(item)) return undefined
  const [key, stamp, member] = item as readonly unknown[]
  if (typeof key !== 'string' || !isKey(key) || !Number.isSafeInteger(stamp) || (stamp as number) < 0) return undefined
  const known = { key, stamp: stamp as number }
  if (isMemberId(member)) return { id: addressOf(key, member), node, change: { ...known, id: member } }
  if (typeof member !== 'object' || member === null) return undefined
  const { id } = member as { readonly id?: unknown }
  if (!isMemberId(id)) return undefined
  return { id: addressOf(key, id), node, change: { ...known, node, member: memberOf(id, JSON.stringify(member)) } }
}

function isMemberId(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]+$/.test(value) && value.length <= MAX_MEMBER_ID_CHARS
}
