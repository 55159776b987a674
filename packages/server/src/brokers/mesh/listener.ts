import { createServer, type Socket } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import { type MeshAddress, nameOf } from './dialer.js'
import type { Refusal } from './frames.js'
import { Handshake, type Identity } from './handshake.js'
import { type Hello, MAX_HANDSHAKE_FRAME_BYTES } from './hello.js'
import type { MeshLogger } from './peers.js'
import { ClosedError, Wire } from './wire.js'

/** What a {@link Listener} works with. */
export interface ListenerContext {
  readonly identity: Identity
  readonly logger: MeshLogger
  readonly handshakeTimeoutMs: number
  /** Takes a connection whose other end is authenticated. */
  admit(wire: Wire, hello: Hello, isDialled: false): void
}

/** Connections of strangers at once. One more ends the oldest: a node of ours needs milliseconds, one that stalls loses its place. */
const MAX_STRANGERS = 64
/** Strangers are warned of once in this time; whoever tries again and again does not fill the log. */
const WARN_INTERVAL_MS = 10_000

/** Takes connections of other nodes. */
export class Listener {
  readonly #context: ListenerContext
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #strangers = new Set<Wire>()
  #warnedAtMs = Number.NEGATIVE_INFINITY
  #unsaidCount = 0

  constructor(context: ListenerContext) {
    this.#context = context
  }

  /**
   * Resolves to where it listens.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  start(address: MeshAddress): Promise<MeshAddress> {
    return new Promise((resolve, reject) => {
      this.#server.on('error', (cause: NodeJS.ErrnoException) => {
        // Later ones are of connections that could not be accepted: no descriptor was free.
        if (this.#server.listening)
          return this.#context.logger.warn({ err: cause }, 'mesh connection could not be accepted')
        const code = cause.code === 'EADDRINUSE' ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE'
        reject(new WebMQError(code, { detail: `mesh.listen: ${nameOf(address)}`, cause }))
      })
      this.#server.listen({ ...address, exclusive: true }, () => {
        const bound = this.#server.address()
        resolve(bound === null || typeof bound === 'string' ? address : { host: bound.address, port: bound.port })
      })
    })
  }

  /** Takes no more, and ends those of strangers. Links stay. */
  stop(): void {
    if (this.#server.listening) this.#server.close()
    for (const wire of [...this.#strangers]) wire.destroy()
    this.#strangers.clear()
  }

  #accept(socket: Socket): void {
    const { identity, handshakeTimeoutMs, admit } = this.#context
    const [oldest] = this.#strangers
    if (this.#strangers.size >= MAX_STRANGERS)
      oldest?.fail(new Error(`more than ${MAX_STRANGERS} connections of strangers`))
    const wire = new Wire(socket, MAX_HANDSHAKE_FRAME_BYTES)
    this.#strangers.add(wire)
    new Handshake(wire, 'acceptor', identity, handshakeTimeoutMs, {
      authenticated: (wire, hello) => {
        this.#strangers.delete(wire)
        admit(wire, hello, false)
      },
      failed: (cause, refusal) => {
        this.#strangers.delete(wire)
        // Those who merely look whether somebody listens are no news, nor is this node itself.
        if (refusal !== 'self' && !(cause instanceof ClosedError)) this.#warn(wire, cause, refusal)
      },
    })
  }

  #warn(wire: Wire, cause: Error, refusal: Refusal | undefined): void {
    const nowMs = performance.now()
    const { logger } = this.#context
    const fields = { address: wire.remote, err: cause, refusal, unsaidCount: this.#unsaidCount }
    if (nowMs - this.#warnedAtMs < WARN_INTERVAL_MS) {
      this.#unsaidCount++
      logger.debug(fields, 'mesh connection refused')
      return
    }
    this.#warnedAtMs = nowMs
    this.#unsaidCount = 0
    logger.warn(fields, 'mesh connection refused')
  }
}
