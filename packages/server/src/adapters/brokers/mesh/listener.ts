import { createServer, type Socket } from 'node:net'
import { WebMQError } from 'webmq-client/protocol'
import { deferred } from '../../../kernel/base/deferred.js'
import { LogPace } from '../../../kernel/base/log-pace.js'
import { nameOf } from './dialers.js'
import type { Refusal } from './frames.js'
import { HANDSHAKE_TIMEOUT_MS, Handshake, type Hello, type Identity, MAX_HANDSHAKE_FRAME_BYTES } from './handshake.js'
import type { MeshAddress, MeshBrokerOptions } from './options.js'
import { ClosedError, Wire } from './wire.js'

/** Most unauthenticated connections. One more ends the oldest: a real node authenticates within milliseconds. */
const MAX_STRANGERS = 64
/** At most one warning about strangers per interval, so that repeated attempts do not fill the log. */
const WARN_INTERVAL_MS = 10_000

export class Listener {
  readonly #identity: Identity
  readonly #logger: MeshBrokerOptions['logger']
  readonly #admit: (wire: Wire, hello: Hello) => void
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #strangers = new Set<Wire>()
  readonly #pace = new LogPace(WARN_INTERVAL_MS)

  /** @param admit Gets each connection that has authenticated. */
  constructor(identity: Identity, logger: MeshBrokerOptions['logger'], admit: (wire: Wire, hello: Hello) => void) {
    this.#identity = identity
    this.#logger = logger
    this.#admit = admit
  }

  /**
   * Resolves to the address it listens on.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`; `E_BROKER_UNAVAILABLE` when it was stopped meanwhile.
   */
  start(address: MeshAddress): Promise<MeshAddress> {
    const listening = deferred<MeshAddress>()
    this.#server.on('error', (cause: NodeJS.ErrnoException) => {
      // Later errors: a connection could not be accepted, because no descriptor was free.
      if (this.#server.listening) return this.#logger.warn({ err: cause }, 'mesh connection could not be accepted')
      const code = cause.code === 'EADDRINUSE' ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE'
      listening.reject(new WebMQError(code, { detail: `mesh.listen: ${nameOf(address)}`, cause }))
    })
    this.#server.on('close', () =>
      listening.reject(new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'it was stopped while it started' })),
    )
    this.#server.listen({ ...address, exclusive: true }, () => {
      const bound = this.#server.address()
      listening.resolve(
        bound === null || typeof bound === 'string' ? address : { host: bound.address, port: bound.port },
      )
    })
    return listening.promise
  }

  /** Accepts no more connections, and ends unauthenticated ones. Links stay. */
  stop(): void {
    // Also one that does not listen yet: it would, when the name is looked up.
    this.#server.close()
    for (const wire of [...this.#strangers]) wire.fail(new ClosedError())
  }

  #accept(socket: Socket): void {
    const [oldest] = this.#strangers
    if (this.#strangers.size >= MAX_STRANGERS)
      oldest?.fail(new Error(`more than ${MAX_STRANGERS} connections of strangers`))
    const wire = new Wire(socket, MAX_HANDSHAKE_FRAME_BYTES)
    this.#strangers.add(wire)
    new Handshake(wire, 'acceptor', this.#identity, HANDSHAKE_TIMEOUT_MS, {
      authenticated: (wire, hello) => {
        this.#strangers.delete(wire)
        this.#admit(wire, hello)
      },
      failed: (cause, refusal) => {
        this.#strangers.delete(wire)
        // No warning for port scans and health checks, which connect and close, nor for this node itself.
        if (refusal !== 'self' && !(cause instanceof ClosedError)) this.#warn(wire, cause, refusal)
      },
    })
  }

  #warn(wire: Wire, cause: Error, refusal: Refusal | undefined): void {
    const unsaidCount = this.#pace.take()
    const level = unsaidCount === undefined ? 'debug' : 'warn'
    const fields = { address: wire.remote, err: cause, refusal, unsaidCount }
    this.#logger[level](fields, 'mesh connection refused')
  }
}
