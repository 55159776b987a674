import { encodeServerMessage, MAX_KEY_BYTES, WebMQError, type Welcome } from 'webmq-client/protocol'
import { ANONYMOUS, type Identity, type TokenVerifier } from '../identity/index.js'
import { isPromise, type MaybePromise } from '../ports/maybe-promise.js'
import type { ConnectionId, Transport, TransportSink, UpgradeId, UpgradeRequest } from '../ports/transport.js'
import type { Dispatcher } from '../session/dispatcher.js'
import { Session, type SessionServices } from '../session/session.js'
import type { Sessions } from '../session/table.js'
import { RefusedOrigins } from './refused-origins.js'
import { type AdmissibleUpgrade, examineUpgrade, rejectionOf, type UpgradePolicy } from './upgrade.js'

/** What a {@link Gateway} works with. */
export interface GatewayContext extends UpgradePolicy {
  readonly transport: Pick<Transport, 'accept' | 'reject'>
  readonly services: SessionServices
  readonly sessions: Sessions
  readonly dispatcher: Pick<Dispatcher, 'receive'>
  /** An accepted upgrade that has not opened by then never will. */
  readonly handshakeTimeoutMs: number
  /** What `welcome` says about this node. */
  readonly node: string
  readonly version: string
  readonly heartbeatMs: number
  /** When draining, the time after which a refused client may try again. */
  readonly drainRetryAfterMs: () => number | undefined
}

/** How a session begins that was accepted. */
interface Admission {
  /** Absent: a token is still to come. */
  readonly identity: Identity | undefined
  /** The token that came was not accepted: the session says so in a way that browsers can see, and ends. */
  readonly refusal: unknown
  readonly acceptedAtMs: number
}

/** With it a client says that it is done (RFC 6455 §7.4.1); a page that is left says 1001, and may come back by a reload. */
const NORMAL_CLOSURE = 1000

/** Where connections come in: decides upgrades, makes sessions, and hands messages on. */
export class Gateway implements TransportSink {
  readonly #context: GatewayContext
  readonly #refusedOrigins: RefusedOrigins
  /** Accepted and not open yet, oldest first. */
  readonly #admissions = new Map<UpgradeId, Admission>()
  readonly #welcomes: { [auth in Welcome['auth']]?: string } = {}

  constructor(context: GatewayContext) {
    this.#context = context
    this.#refusedOrigins = new RefusedOrigins(context.services.log)
  }

  upgrade(request: UpgradeRequest): void {
    const { drainRetryAfterMs, services, transport } = this.#context
    const retryAfterMs = drainRetryAfterMs()
    try {
      if (retryAfterMs !== undefined) throw new WebMQError('E_DRAIN')
      const admissible = examineUpgrade(request, this.#context)
      const { verifier } = services
      if (verifier === undefined) this.#accept(request.id, admissible, ANONYMOUS, undefined)
      else if (admissible.token === undefined) this.#accept(request.id, admissible, undefined, undefined)
      else this.#verify(request.id, admissible, verifier, admissible.token)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      services.log.debug(
        { code: error.code, path: request.path, remoteAddress: request.remoteAddress },
        'upgrade refused',
      )
      if (error.code === 'E_ORIGIN_FORBIDDEN') this.#refusedOrigins.report(request.header('origin'))
      const retryAfter = retryAfterMs === undefined ? {} : { 'retry-after': `${Math.ceil(retryAfterMs / 1_000)}` }
      transport.reject(request.id, rejectionOf(error, retryAfter))
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    const admission = this.#admissions.get(upgrade)
    this.#admissions.delete(upgrade)
    const session = new Session(connection, this.#context.services)
    this.#context.sessions.add(session)
    const { identity, refusal } = admission ?? { identity: undefined, refusal: new WebMQError('E_INTERNAL') }
    if (refusal !== undefined) {
      session.refuseToken(refusal, undefined)
      return
    }
    if (identity === undefined) session.awaitToken()
    else session.authenticate(identity)
    this.#context.services.transport.send(connection, this.#welcome(session), false)
    // Accepted before the drain began, open only now.
    const retryAfterMs = this.#context.drainRetryAfterMs()
    if (retryAfterMs !== undefined) session.end('E_DRAIN', retryAfterMs)
  }

  message(connection: ConnectionId, data: Uint8Array, isBinary: boolean): void {
    const session = this.#context.sessions.get(connection)
    if (session !== undefined) this.#context.dispatcher.receive(session, data, isBinary)
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    const session = this.#context.sessions.remove(connection, code === NORMAL_CLOSURE)
    this.#context.services.log.debug({ session: session?.id, user: session?.userId, code, reason }, 'connection closed')
  }

  failed(error: Error): void {
    this.#context.services.log.error({ err: error }, 'the transport failed')
  }

  /** A token that is not accepted is told to the session, not to the request: a page cannot see why that was refused. */
  #verify(upgrade: UpgradeId, admissible: AdmissibleUpgrade, verifier: TokenVerifier, token: string): void {
    const accept = (identity: Identity) => this.#accept(upgrade, admissible, identity, undefined)
    const refuse = (refusal: unknown) => this.#accept(upgrade, admissible, undefined, refusal)
    let identity: MaybePromise<Identity>
    try {
      identity = verifier.verify(token)
    } catch (refusal) {
      refuse(refusal)
      return
    }
    if (isPromise(identity)) identity.then(accept, refuse)
    else accept(identity)
  }

  #accept(
    upgrade: UpgradeId,
    { subprotocol }: AdmissibleUpgrade,
    identity: Identity | undefined,
    refusal: unknown,
  ): void {
    const nowMs = this.#context.services.now()
    // A peer that went away before its accept never opens: what was kept for it goes with the next ones.
    for (const [id, { acceptedAtMs }] of this.#admissions) {
      if (nowMs - acceptedAtMs < this.#context.handshakeTimeoutMs) break
      this.#admissions.delete(id)
    }
    this.#admissions.set(upgrade, { identity, refusal, acceptedAtMs: nowMs })
    this.#context.transport.accept(upgrade, subprotocol === undefined ? {} : { subprotocol })
  }

  #welcome(session: Session): string {
    const { verifier } = this.#context.services
    const auth = verifier === undefined ? 'none' : session.state === 'active' ? 'done' : 'required'
    this.#welcomes[auth] ??= this.#welcomeUpToSession(auth)
    const expiresInMs = session.expiresInMs()
    return `${this.#welcomes[auth]}${session.id}"${expiresInMs === undefined ? '' : `,"expiresInMs":${expiresInMs}`}}`
  }

  /** What all sessions are told, up to their id. */
  #welcomeUpToSession(auth: Welcome['auth']): string {
    const { services, node, version, heartbeatMs } = this.#context
    const { maxPayloadBytes, maxListensPerConnection } = services.limits
    const limits = { maxPayloadBytes, maxKeyBytes: MAX_KEY_BYTES, maxListensPerConnection }
    const shared = { protocol: 'webmq.v1', auth, node, version, heartbeatMs, limits } as const
    return encodeServerMessage({ verb: 'welcome', ...shared, session: '' }).slice(0, -'"}'.length)
  }
}
