import { isId, isKey } from 'webmq-client/protocol'
import { memberOf } from './member.js'
import type { Entry } from './members.js'

/** A member that a node no longer holds. */
export interface Departure {
  readonly key: string
  readonly id: string
  /** Ends all older entries of the member, on every node; 0 ends the sender's entry alone. */
  readonly stamp: number
}

/** A message between nodes. `node` is the sender; `version` counts the sender's `changes` messages. */
export type NodeMessage =
  /** To all nodes: what changed since the previous version. */
  | {
      readonly kind: 'changes'
      readonly node: string
      readonly version: number
      readonly entries: readonly Entry[]
      readonly departures: readonly Departure[]
    }
  /** To all nodes, or to one that asked: the sender is alive, and its members are valid for this time. */
  | {
      readonly kind: 'lease'
      readonly node: string
      readonly version: number
      readonly validMs: number
      /** Every node answers with a lease. */
      readonly asks: boolean
    }
  /** To one node: send all your members, in parts with this number. */
  | { readonly kind: 'want'; readonly node: string; readonly round: number }
  /** To one node: some of the sender's members. The first part has the index 0. */
  | {
      readonly kind: 'part'
      readonly node: string
      readonly round: number
      readonly index: number
      readonly version: number
      readonly isLast: boolean
      readonly entries: readonly Entry[]
    }

/** Letters on the wire. */
const KINDS = { changes: 'c', lease: 'l', want: 'w', part: 'p' } as const

const MAX_MEMBER_ID_CHARS = 64

/** The text of an entry within a message; commas join several. */
export function encodeEntry({ key, stamp, member }: Entry): string {
  return `[${JSON.stringify(key)},${stamp},${member.json}]`
}

/** The text of a departure within a message; commas join several. */
export function encodeDeparture({ key, id, stamp }: Departure): string {
  return `[${JSON.stringify(key)},${JSON.stringify(id)},${stamp}]`
}

export function encodeChanges(node: string, version: number, entries: string, departures: string): string {
  return `{"k":"c","n":"${node}","v":${version},"e":[${entries}],"d":[${departures}]}`
}

export function encodeLease(node: string, version: number, validMs: number, asks: boolean): string {
  return JSON.stringify({ k: KINDS.lease, n: node, v: version, t: validMs, a: asks })
}

export function encodeWant(node: string, round: number): string {
  return JSON.stringify({ k: KINDS.want, n: node, r: round })
}

export function encodePart(
  node: string,
  { round, index, version, isLast }: { round: number; index: number; version: number; isLast: boolean },
  entries: string,
): string {
  return `{"k":"p","n":"${node}","r":${round},"i":${index},"v":${version},"z":${isLast},"e":[${entries}]}`
}

/** Reads a message of a node; `undefined` when it is malformed or of a newer format. */
export function decodeNodeMessage(payload: Uint8Array): NodeMessage | undefined {
  let json: unknown
  try {
    json = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString())
  } catch {
    return undefined
  }
  if (typeof json !== 'object' || json === null) return undefined
  const { k, n: node, v: version = 0, t: validMs, a: asks, r: round, i: index, z: isLast, e, d } = json as Json
  // A node's name is part of a key, so it must be a valid id.
  if (typeof node !== 'string' || !isId(node) || !isCount(version)) return undefined
  switch (k) {
    case KINDS.changes: {
      const entries = entriesIn(e, node)
      const departures = departuresIn(d)
      return entries && departures && { kind: 'changes', node, version, entries, departures }
    }
    case KINDS.lease:
      return isCount(validMs) ? { kind: 'lease', node, version, validMs, asks: asks === true } : undefined
    case KINDS.want:
      return isCount(round) ? { kind: 'want', node, round } : undefined
    case KINDS.part: {
      const entries = entriesIn(e, node)
      if (!isCount(round) || !isCount(index) || entries === undefined) return undefined
      return { kind: 'part', node, round, index, version, isLast: isLast === true, entries }
    }
    default:
      return undefined
  }
}

type Json = Readonly<Record<string, unknown>>

function entriesIn(list: unknown, node: string): readonly Entry[] | undefined {
  return listOf(list, ([key, stamp, member]) => {
    if (!isKeyText(key) || !isCount(stamp) || typeof member !== 'object' || member === null) return undefined
    const { id } = member as Json
    return isMemberId(id) ? { key, stamp, node, member: memberOf(id, JSON.stringify(member)) } : undefined
  })
}

function departuresIn(list: unknown): readonly Departure[] | undefined {
  return listOf(list, ([key, id, stamp]) =>
    isKeyText(key) && isMemberId(id) && isCount(stamp) ? { key, id, stamp } : undefined,
  )
}

/** All items or none: one malformed item discards the whole message. */
function listOf<T>(list: unknown, read: (item: readonly unknown[]) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(list)) return undefined
  const result: T[] = []
  for (const item of list) {
    const value = Array.isArray(item) ? read(item) : undefined
    if (value === undefined) return undefined
    result.push(value)
  }
  return result
}

function isKeyText(value: unknown): value is string {
  return typeof value === 'string' && isKey(value)
}

function isMemberId(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]+$/.test(value) && value.length <= MAX_MEMBER_ID_CHARS
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
