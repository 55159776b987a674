import { isId } from 'webmq-client/protocol'
import { type Revocation, revocationFrom, revocationText } from './revocation.js'

/** Which connections an operator ends: those of a user, of an address, or one session. */
export type DisconnectTarget =
  | { readonly by: 'user'; readonly value: string }
  | { readonly by: 'session'; readonly value: string }
  | { readonly by: 'address'; readonly value: string }

/** Codes that an operator may end connections with. After the first, clients do not come back by themselves. */
export const DISCONNECT_CODES = ['E_DISCONNECTED_BY_OPERATOR', 'E_TOKEN_EXPIRED', 'E_DRAIN'] as const

/** One of {@link DISCONNECT_CODES}. */
export type DisconnectCode = (typeof DISCONNECT_CODES)[number]

/** What a node tells of itself. Rates are per second, since the last summary or, without one, since the start. */
export interface NodeSummary {
  readonly node: string
  readonly version: string
  readonly status: string
  readonly uptimeMs: number
  readonly connections: number
  readonly patterns: number
  /** Messages of clients. */
  readonly receivedPerSecond: number
  /** Messages to clients. */
  readonly sentPerSecond: number
  readonly broker: string
  readonly brokerStatus: string
}

/** A set of revocations in short, to find out whether two nodes hold the same. */
export interface RevocationDigest {
  readonly count: number
  readonly hash: number
}

/** A message between nodes. `node` is the sender. */
export type ControlMessage =
  /** To all: the sender has started, or reached the broker again. Every node answers with `here`. */
  | ({ readonly kind: 'hello'; readonly node: string } & RevocationDigest)
  /** To one node, as the answer to `hello`. */
  | ({ readonly kind: 'here'; readonly node: string } & RevocationDigest)
  /** To all: the sender stops. */
  | { readonly kind: 'bye'; readonly node: string }
  /** To one node: send me all your revocations. */
  | { readonly kind: 'want'; readonly node: string }
  /** To all, or as a part of an answer to `want`: the last part says so. */
  | {
      readonly kind: 'revoke'
      readonly node: string
      readonly revocations: readonly Revocation[]
      readonly isLast: boolean
    }
  /** To all: end these connections. */
  | {
      readonly kind: 'disconnect'
      readonly node: string
      readonly target: DisconnectTarget
      readonly code: DisconnectCode
    }
  /** To all: tell of yourself. Every node answers with `summary`. */
  | { readonly kind: 'ask'; readonly node: string; readonly round: number }
  /** To one node, as the answer to `ask`. */
  | { readonly kind: 'summary'; readonly node: string; readonly round: number; readonly summary: NodeSummary }

/** The version of the format. A node ignores messages of another one. */
const FORMAT = 1
/** Longest text in a message: a user is at most this long. */
const MAX_TEXT_CHARS = 1_024
/** Most revocations in one message. */
const MAX_REVOCATIONS = 1_000

/** The text of a message. */
export function encodeControlMessage(message: ControlMessage): string {
  const { kind, node, ...rest } = message
  const body = 'revocations' in rest ? { ...rest, revocations: rest.revocations.map(revocationText) } : rest
  return JSON.stringify({ v: FORMAT, kind, node, ...body })
}

/** Reads a message of a node; `undefined` when it is malformed or of another format, `unknown` for a newer kind. */
export function decodeControlMessage(payload: Uint8Array): ControlMessage | 'unknown' | undefined {
  let json: unknown
  try {
    json = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString())
  } catch {
    return undefined
  }
  if (typeof json !== 'object' || json === null) return undefined
  const fields = json as Fields
  const { v, kind, node } = fields
  if (!Number.isSafeInteger(v)) return undefined
  if (v !== FORMAT) return 'unknown'
  // A node's name is part of a key, so it must be a valid id.
  if (typeof node !== 'string' || !isId(node)) return undefined
  const read =
    typeof kind === 'string' && Object.hasOwn(READERS, kind) ? READERS[kind as ControlMessage['kind']] : undefined
  return read === undefined ? 'unknown' : read(fields, node)
}

type Fields = Readonly<Record<string, unknown>>

const READERS: {
  readonly [K in ControlMessage['kind']]: (fields: Fields, node: string) => ControlMessage | undefined
} = {
  hello: (fields, node) => withDigest('hello', fields, node),
  here: (fields, node) => withDigest('here', fields, node),
  bye: (_, node) => ({ kind: 'bye', node }),
  want: (_, node) => ({ kind: 'want', node }),
  revoke({ revocations, isLast }, node) {
    if (!Array.isArray(revocations) || revocations.length > MAX_REVOCATIONS) return undefined
    const read = revocations.map(revocationFrom).filter((revocation) => revocation !== undefined)
    // All or none: one malformed entry discards the message.
    if (read.length < revocations.length) return undefined
    return { kind: 'revoke', node, revocations: read, isLast: isLast === true }
  },
  disconnect({ target, code }, node) {
    const known = DISCONNECT_CODES.find((name) => name === code)
    if (known === undefined || typeof target !== 'object' || target === null) return undefined
    const { by, value } = target as Fields
    if ((by !== 'user' && by !== 'session' && by !== 'address') || !isText(value)) return undefined
    return { kind: 'disconnect', node, target: { by, value }, code: known }
  },
  ask: ({ round }, node) => (isCount(round) ? { kind: 'ask', node, round } : undefined),
  summary({ round, summary }, node) {
    if (!isCount(round) || typeof summary !== 'object' || summary === null) return undefined
    const read = summaryFrom(summary as Fields, node)
    return read && { kind: 'summary', node, round, summary: read }
  },
}

function withDigest<K extends 'hello' | 'here'>(kind: K, { count, hash }: Fields, node: string) {
  return isCount(count) && isCount(hash) ? { kind, node, count, hash } : undefined
}

function summaryFrom(fields: Fields, node: string): NodeSummary | undefined {
  const { version, status, broker, brokerStatus } = fields
  const { uptimeMs, connections, patterns, receivedPerSecond, sentPerSecond } = fields
  if (!isText(version) || !isText(status) || !isText(broker) || !isText(brokerStatus)) return undefined
  if (!isAmount(uptimeMs) || !isAmount(connections) || !isAmount(patterns)) return undefined
  if (!isAmount(receivedPerSecond) || !isAmount(sentPerSecond)) return undefined
  const counts = { uptimeMs, connections, patterns, receivedPerSecond, sentPerSecond }
  return { node, version, status, ...counts, broker, brokerStatus }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TEXT_CHARS
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
