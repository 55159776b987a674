import { randomBytes } from 'node:crypto'
import { WebMQError } from 'webmq-client/protocol'
import { encodeFrame, FRAME, REFUSAL, REFUSAL_TEXTS, type Refusal, refusalOf } from './frames.js'
import { decodeHello, encodeHello, type Hello, isProof, NONCE_BYTES, proofOf, type Role } from './hello.js'
import type { Wire, WireHandler } from './wire.js'

/** This node's hello, and the secret of the mesh. */
export interface Identity extends Hello {
  /** Empty for a mesh without a secret; both sides must agree. */
  readonly secret: string
}

/** How a handshake ends. */
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
    this.#timer = setTimeout(() => wire.fail(new Error(`no handshake within ${timeoutMs} ms`)), timeoutMs)
    // A wire that is destroyed does not tell, and must not keep the process alive.
    this.#timer.unref()
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
    if (hello === undefined) {
      this.#wire.fail(new Error('it does not speak the mesh protocol'))
      return
    }
    if (hello === 'version') {
      this.#refuse('version')
      return
    }
    if (hello.namespace !== this.#identity.namespace) {
      this.#refuse('namespace')
      return
    }
    if (hello.nodeId === this.#identity.nodeId) {
      this.#refuse('self')
      return
    }
    this.#theirHello = body
    this.#theirs = hello
    if (this.#role === 'acceptor') this.#wire.write(encodeFrame(FRAME.hello, this.#hello))
    else if (this.#events.isWanted?.(hello) === false) {
      clearTimeout(this.#timer)
      this.#wire.destroy()
    } else this.#wire.write(encodeFrame(FRAME.proof, this.#proofBy('dialer')))
  }

  #onProof(proof: Uint8Array, theirs: Hello): void {
    if (!isProof(proof, this.#proofBy(this.#role === 'dialer' ? 'acceptor' : 'dialer'))) {
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
