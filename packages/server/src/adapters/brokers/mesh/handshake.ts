import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import type { HistoryOptions } from '../../../kernel/ports/history-rules.js'
import { hasHistory } from '../log/history-log.js'
import { encodeFrame, FRAME, MESH_VERSION, REFUSAL, REFUSAL_TEXTS, type Refusal, refusalOf } from './frames.js'
import type { Wire, WireHandler } from './wire.js'

/** Identifies a WebMQ mesh of any version: it precedes the version. */
const MAGIC = Buffer.from('webmq.mesh')
const VERSION_AT = MAGIC.length
const NODE_ID_AT = VERSION_AT + 2
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

export interface Hello {
  /** 16 characters of `[0-9a-f]`, different for every start of every node. */
  readonly nodeId: string
  readonly namespace: string
  /** Equal on nodes with the same history rules; see {@link rulesHashOf}. */
  readonly rulesHash: string
  /** Port that it listens on. Others may reach it by another port, through a proxy. */
  readonly listenPort: number
}

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
function decodeHello(body: Buffer): Hello | 'version' | undefined {
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

export type Role = 'dialer' | 'acceptor'

/**
 * Proves knowledge of the secret without sending it. It covers both hellos, each with a fresh nonce, so it is valid for
 * one connection. It covers the role, so it cannot be reflected to its sender.
 */
function proofOf(secret: string, role: Role, dialerHello: Uint8Array, acceptorHello: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(dialerHello.length)
  return createHmac('sha256', secret)
    .update(`webmq.mesh ${role}\n`)
    .update(length)
    .update(dialerHello)
    .update(acceptorHello)
    .digest()
}

/** From the first packet until the other node is authenticated; and from then until it is linked. */
export const HANDSHAKE_TIMEOUT_MS = 5_000

export interface Identity extends Hello {
  /** Empty for a mesh without a secret; both sides must agree. */
  readonly secret: string
}

export interface HandshakeEvents {
  /**
   * Called on the dialer when it knows the other node, before it proves itself. `false` closes the connection without
   * an event. Default: true.
   */
  isWanted?(hello: Hello): boolean
  /** The other node knows the secret. The wire is handed over without a handler. */
  authenticated(wire: Wire, hello: Hello): void
  /**
   * No link; the wire is closed. `E_BROKER_REFUSED` when one side refused the other. Otherwise the connection was lost,
   * or the other end is not a mesh.
   */
  failed(cause: Error, refusal?: Refusal): void
}

/**
 * Finds out whether the other end of a connection belongs to the mesh.
 *
 * The dialer sends its hello and its proof first: a stranger that connects never receives a value made from the secret.
 */
export class Handshake implements WireHandler {
  readonly #wire: Wire
  readonly #role: Role
  readonly #identity: Identity
  readonly #events: HandshakeEvents
  readonly #timer: NodeJS.Timeout
  readonly #hello: Buffer
  #theirHello: Buffer | undefined
  #theirs: Hello | undefined

  constructor(wire: Wire, role: Role, identity: Identity, timeoutMs: number, events: HandshakeEvents) {
    this.#wire = wire
    this.#role = role
    this.#identity = identity
    this.#events = events
    this.#hello = encodeHello(identity, randomBytes(NONCE_BYTES))
    // A wire that is destroyed does not tell, and must not keep the process alive.
    this.#timer = setTimeout(() => wire.fail(new Error(`no handshake within ${timeoutMs} ms`)), timeoutMs).unref()
    wire.handler = this
    if (role === 'dialer') wire.write(encodeFrame(FRAME.hello, this.#hello))
  }

  frame(type: number, bytes: Buffer, start: number, end: number): void {
    const body = bytes.subarray(start, end)
    if (type === FRAME.hello && this.#theirHello === undefined) this.#onHello(Buffer.from(body))
    else if (type === FRAME.proof && this.#theirs !== undefined) this.#onProof(body, this.#theirs)
    else if (type === FRAME.refuse && this.#role === 'dialer') this.#onRefusal(refusalOf(body[0] ?? 0))
    else this.#wire.fail(new Error('it does not speak the mesh protocol'))
  }

  closed(cause: Error): void {
    clearTimeout(this.#timer)
    this.#events.failed(cause)
  }

  #onHello(body: Buffer): void {
    const hello = decodeHello(body)
    if (hello === undefined) this.#wire.fail(new Error('it does not speak the mesh protocol'))
    else if (hello === 'version') this.#refuse('version')
    else if (hello.namespace !== this.#identity.namespace) this.#refuse('namespace')
    else if (hello.nodeId === this.#identity.nodeId) this.#refuse('self')
    else this.#take(body, hello)
  }

  #take(body: Buffer, hello: Hello): void {
    this.#theirHello = body
    this.#theirs = hello
    if (this.#role === 'acceptor') this.#wire.write(encodeFrame(FRAME.hello, this.#hello))
    else if (this.#events.isWanted?.(hello) === false) {
      clearTimeout(this.#timer)
      this.#wire.destroy()
    } else this.#wire.write(encodeFrame(FRAME.proof, this.#proofBy('dialer')))
  }

  #onProof(proof: Uint8Array, theirs: Hello): void {
    const expected = this.#proofBy(this.#role === 'dialer' ? 'acceptor' : 'dialer')
    // In constant time.
    if (proof.length !== expected.length || !timingSafeEqual(proof, expected)) {
      this.#refuse('secret')
      return
    }
    if (this.#role === 'acceptor') this.#wire.write(encodeFrame(FRAME.proof, this.#proofBy('acceptor')))
    clearTimeout(this.#timer)
    this.#wire.handler = undefined
    this.#events.authenticated(this.#wire, theirs)
  }

  #proofBy(role: Role): Buffer {
    const theirs = this.#theirHello ?? Buffer.alloc(0)
    const [dialer, acceptor] = this.#role === 'dialer' ? [this.#hello, theirs] : [theirs, this.#hello]
    return proofOf(this.#identity.secret, role, dialer, acceptor)
  }

  #onRefusal(refusal: Refusal | undefined): void {
    const text = refusal === undefined ? 'for a reason that this version does not know' : REFUSAL_TEXTS[refusal]
    this.#end(`it refuses this node: ${text}`, refusal)
  }

  #refuse(refusal: Refusal): void {
    if (this.#role === 'acceptor') this.#wire.write(encodeFrame(FRAME.refuse, Uint8Array.of(REFUSAL[refusal])))
    this.#end(`this node refuses it: ${REFUSAL_TEXTS[refusal]}`, refusal)
  }

  #end(detail: string, refusal: Refusal | undefined): void {
    clearTimeout(this.#timer)
    this.#wire.end()
    this.#events.failed(new WebMQError('E_BROKER_REFUSED', { detail }), refusal)
  }
}
