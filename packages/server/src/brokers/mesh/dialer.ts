import { connect } from 'node:net'
import { fullJitterMs } from '../remote/backoff.js'
import { Handshake, type Identity } from './handshake.js'
import { type Hello, MAX_HANDSHAKE_FRAME_BYTES } from './hello.js'
import type { MeshLogger, Peers } from './peers.js'
import { Wire } from './wire.js'

/** Address of a node of the mesh. */
export interface MeshAddress {
  /** An IP address or a name, without brackets. */
  readonly host: string
  readonly port: number
}

/** What a {@link Dialer} works with. */
export interface DialerContext {
  readonly identity: Identity
  readonly peers: Peers
  readonly logger: MeshLogger
  /** From the first packet until the other node is authenticated. */
  readonly handshakeTimeoutMs: number
  /** Takes over an authenticated connection. */
  admit(wire: Wire, hello: Hello, isDialled: true): void
  /** An attempt has ended: `isTried` may have changed. */
  tried(): void
}

const BACKOFF = { baseMs: 100, maxMs: 5_000 }
/** Interval for checking that a node is still linked over another connection. */
const RECHECK_MS = 1_000

/** Keeps the node at one address linked. */
export class Dialer {
  readonly address: MeshAddress
  readonly #name: string
  readonly #context: DialerContext
  #wire: Wire | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether someone else now owns the connection. */
  #isHandedOver = false
  #isStopped = false
  #failedCount = 0
  #hasEnded = false
  #isSelf = false
  #nodeId: string | undefined
  #lastFailure: string | undefined

  constructor(address: MeshAddress, context: DialerContext) {
    this.address = address
    this.#name = nameOf(address)
    this.#context = context
  }

  /** Id of the node that answered last at this address. */
  get nodeId(): string | undefined {
    return this.#nodeId
  }

  /** Whether an attempt has ended, and the node is either linked in both directions or not linked at all. */
  get isTried(): boolean {
    const peer = this.#nodeId === undefined ? undefined : this.#context.peers.get(this.#nodeId)
    return peer?.isSettled === true || (this.#hasEnded && peer?.link === undefined)
  }

  /** Dials now, unless an attempt is running, the node is linked, or the address is this node's own. */
  dial(): void {
    if (this.#isStopped || this.#isSelf || this.#wire !== undefined) return
    clearTimeout(this.#timer)
    if (this.#isLinked) {
      this.#wait(RECHECK_MS)
      return
    }
    const { identity, handshakeTimeoutMs } = this.#context
    const wire = new Wire(connect(this.address), MAX_HANDSHAKE_FRAME_BYTES, this.#name)
    this.#wire = wire
    this.#isHandedOver = false
    wire.onEnd = () => this.#ended()
    new Handshake(wire, 'dialer', identity, handshakeTimeoutMs, {
      isWanted: ({ nodeId }) => {
        this.#nodeId = nodeId
        return !this.#isLinked
      },
      authenticated: (wire, hello) => this.#authenticated(wire, hello),
      failed: (cause, refusal) => {
        this.#isSelf = refusal === 'self'
        if (!this.#isSelf) this.#failed(cause)
      },
    })
  }

  /** A node has lost its link: dials soon if it is the node at this address. */
  unlinked(nodeId: string): void {
    if (nodeId !== this.#nodeId || this.#wire !== undefined) return
    this.#failedCount = 0
    this.#wait(fullJitterMs(1, BACKOFF))
  }

  /** Stops dialling. Existing links stay. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    if (!this.#isHandedOver) this.#wire?.destroy()
  }

  get #isLinked(): boolean {
    return this.#nodeId !== undefined && this.#context.peers.isLinked(this.#nodeId)
  }

  #authenticated(wire: Wire, hello: Hello): void {
    this.#nodeId = hello.nodeId
    this.#lastFailure = undefined
    this.#isHandedOver = true
    this.#context.admit(wire, hello, true)
    if (this.#isLinked) this.#failedCount = 0
  }

  /** Warns once per reason, not once per attempt. */
  #failed(cause: Error): void {
    const { logger, peers } = this.#context
    const level = cause.message === this.#lastFailure ? 'debug' : 'warn'
    this.#lastFailure = cause.message
    logger[level]({ address: this.#name, err: cause }, 'mesh peer cannot be linked')
    const isRefused = 'code' in cause && cause.code === 'ECONNREFUSED'
    if (isRefused && this.#nodeId !== undefined) peers.ended(this.#nodeId, this.address.port)
  }

  #ended(): void {
    this.#wire = undefined
    this.#hasEnded = true
    if (!this.#isStopped && !this.#isSelf) {
      this.#wait(this.#isLinked ? RECHECK_MS : fullJitterMs(++this.#failedCount, BACKOFF))
    }
    this.#context.tried()
  }

  #wait(delayMs: number): void {
    if (this.#isStopped) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.dial(), delayMs)
  }
}

/** `host:port`, as in a URL. */
export function nameOf({ host, port }: MeshAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
