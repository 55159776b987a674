import { createHmac, timingSafeEqual } from 'node:crypto'
import { MESH_VERSION } from './frames.js'

/** Says that the other side is a mesh of WebMQ, of any version: it stands before the version. */
const MAGIC = Buffer.from('webmq.mesh')
const VERSION_AT = MAGIC.length
const NODE_AT = VERSION_AT + 2
/** Characters of a node's id. */
export const NODE_CHARS = 16
const NONCE_AT = NODE_AT + NODE_CHARS
/** Bytes of a nonce: as many as the hash that it goes into. */
export const NONCE_BYTES = 32
const HEARTBEAT_AT = NONCE_AT + NONCE_BYTES
const RULES_AT = HEARTBEAT_AT + 4
/** Characters of what stands for the rules of history. */
export const RULES_CHARS = 16
const NAMESPACE_AT = RULES_AT + RULES_CHARS

/** Frames before a link is authenticated are not larger than this: room for the hello of a later version, to be told that it is one. */
export const MAX_HANDSHAKE_FRAME_BYTES = 512

/** What a node says of itself. */
export interface Hello {
  /** 16 characters of `[0-9a-f]`, different for every start of every node. */
  readonly node: string
  readonly namespace: string
  /** Interval of its heartbeats. */
  readonly heartbeatMs: number
  /** The same on nodes that log the same keys, different on others: 16 characters of ASCII. */
  readonly rules: string
}

/** The body of a `hello` frame. */
export function encodeHello({ node, namespace, heartbeatMs, rules }: Hello, nonce: Uint8Array): Buffer {
  const body = Buffer.alloc(NAMESPACE_AT + Buffer.byteLength(namespace))
  MAGIC.copy(body)
  body.writeUInt16LE(MESH_VERSION, VERSION_AT)
  body.write(node, NODE_AT, 'latin1')
  body.set(nonce, NONCE_AT)
  body.writeUInt32LE(heartbeatMs, HEARTBEAT_AT)
  body.write(rules, RULES_AT, RULES_CHARS, 'latin1')
  body.write(namespace, NAMESPACE_AT)
  return body
}

/** What a `hello` says; `version` when it is of another version, `undefined` when it is no hello at all. */
export function decodeHello(body: Buffer): Hello | 'version' | undefined {
  if (body.length < NODE_AT || MAGIC.compare(body, 0, VERSION_AT) !== 0) return undefined
  if (body.readUInt16LE(VERSION_AT) !== MESH_VERSION) return 'version'
  if (body.length <= NAMESPACE_AT) return undefined
  const node = body.toString('latin1', NODE_AT, NONCE_AT)
  if (!/^[0-9a-f]+$/.test(node)) return undefined
  return {
    node,
    namespace: body.toString('utf8', NAMESPACE_AT),
    heartbeatMs: body.readUInt32LE(HEARTBEAT_AT),
    rules: body.toString('latin1', RULES_AT, NAMESPACE_AT),
  }
}

/** Which end of a connection a node is. */
export type Role = 'dialer' | 'acceptor'

/**
 * Proves to know the secret without telling it. Both hellos, each with a fresh nonce, go in: a proof is good for this connection
 * alone; and the role, so that it cannot be sent back to the one who made it.
 */
export function proofOf(secret: string, role: Role, dialerHello: Uint8Array, acceptorHello: Uint8Array): Buffer {
  return createHmac('sha256', secret)
    .update(`webmq.mesh ${role}\n`)
    .update(lengthOf(dialerHello))
    .update(dialerHello)
    .update(acceptorHello)
    .digest()
}

/** Takes the same time wherever they differ. */
export function isProof(given: Uint8Array, expected: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function lengthOf(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return length
}
