import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { HistoryOptions } from '../../ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import { MESH_VERSION } from './frames.js'

/** Identifies a WebMQ mesh of any version: it precedes the version. */
const MAGIC = Buffer.from('webmq.mesh')
const VERSION_AT = MAGIC.length
const NODE_ID_AT = VERSION_AT + 2
/** Characters of a node id. */
export const NODE_ID_CHARS = 16
const NONCE_AT = NODE_ID_AT + NODE_ID_CHARS
/** Bytes of a nonce: as many as those of the hash it goes into. */
export const NONCE_BYTES = 32
const RULES_HASH_AT = NONCE_AT + NONCE_BYTES
const RULES_HASH_CHARS = 16
const LISTEN_PORT_AT = RULES_HASH_AT + RULES_HASH_CHARS
const NAMESPACE_AT = LISTEN_PORT_AT + 2

/**
 * Largest frame before authentication. Leaves room for a longer hello of a later version, to recognise that version.
 */
export const MAX_HANDSHAKE_FRAME_BYTES = 512

/** How a node introduces itself. */
export interface Hello {
  /** 16 characters of `[0-9a-f]`, different for every start of every node. */
  readonly nodeId: string
  readonly namespace: string
  /** Equal on nodes with the same history rules; see {@link rulesHashOf}. */
  readonly rulesHash: string
  /** Port that it listens on. Others may reach it by another port, through a proxy. */
  readonly listenPort: number
}

/** The body of a `hello` frame. */
export function encodeHello({ nodeId, namespace, rulesHash, listenPort }: Hello, nonce: Uint8Array): Buffer {
  const body = Buffer.alloc(NAMESPACE_AT + Buffer.byteLength(namespace))
  MAGIC.copy(body)
  body.writeUInt16LE(MESH_VERSION, VERSION_AT)
  body.write(nodeId, NODE_ID_AT, 'latin1')
  body.set(nonce, NONCE_AT)
  body.write(rulesHash, RULES_HASH_AT, RULES_HASH_CHARS, 'latin1')
  body.writeUInt16LE(listenPort, LISTEN_PORT_AT)
  body.write(namespace, NAMESPACE_AT)
  return body
}

/** Decodes a `hello`: `version` if it is of another version, `undefined` if it is no hello. */
export function decodeHello(body: Buffer): Hello | 'version' | undefined {
  if (body.length < NODE_ID_AT || MAGIC.compare(body, 0, VERSION_AT) !== 0) return undefined
  if (body.readUInt16LE(VERSION_AT) !== MESH_VERSION) return 'version'
  if (body.length <= NAMESPACE_AT) return undefined
  const nodeId = body.toString('latin1', NODE_ID_AT, NONCE_AT)
  if (!/^[0-9a-f]+$/.test(nodeId)) return undefined
  return {
    nodeId,
    namespace: body.toString('utf8', NAMESPACE_AT),
    rulesHash: body.toString('latin1', RULES_HASH_AT, LISTEN_PORT_AT),
    listenPort: body.readUInt16LE(LISTEN_PORT_AT),
  }
}

/** A hash of a node's history rules: 16 ASCII characters. */
export function rulesHashOf(options: HistoryOptions): string {
  if (!hasHistory(options)) return '-'.repeat(RULES_HASH_CHARS)
  return createHash('sha256').update(options.history.patterns.join('\n')).digest('base64').slice(0, RULES_HASH_CHARS)
}

/** Which end of a connection a node is. */
export type Role = 'dialer' | 'acceptor'

/**
 * Proves knowledge of the secret without sending it. It covers both hellos, each with a fresh nonce, so it is valid for
 * one connection. It covers the role, so it cannot be reflected to its sender.
 */
export function proofOf(secret: string, role: Role, dialerHello: Uint8Array, acceptorHello: Uint8Array): Buffer {
  return createHmac('sha256', secret)
    .update(`webmq.mesh ${role}\n`)
    .update(lengthOf(dialerHello))
    .update(dialerHello)
    .update(acceptorHello)
    .digest()
}

/** Compares in constant time. */
export function isProof(given: Uint8Array, expected: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function lengthOf(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return length
}
