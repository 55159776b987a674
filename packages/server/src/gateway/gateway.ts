import { encodeServerMessage, MAX_KEY_BYTES, WebMQError, type Welcome } from 'webmq-client/protocol'
import type { Deadline } from '../deadlines.js'
import { countedAddress } from '../identity/client-address.js'
import { ANONYMOUS, type Identity, type TokenVerifier } from '../identity/index.js'
import type { ConnectionId, Transport, TransportSink, UpgradeId, UpgradeRequest } from '../ports/transport.js'
import type { ConnectionCounts } from '../session/connection-counts.js'
import type { Dispatcher } from '../session/dispatcher.js'
import { Session, type SessionServices } from '../session/session.js'
import type { SessionTable } from '../session/table.js'
import { RefusedOrigins } from './refused-origins.js'
import { type AdmissibleUpgrade, examineUpgrade, rejectionOf, type UpgradePolicy } from './upgrade.js'

/** What a {@link Gateway} works with. */
export interface GatewayContext extends UpgradePolicy {
  readonly transport: Pick<Transport, 'accept' | 'reject'>
  readonly services: SessionServices
  readonly sessions: SessionTable
  readonly dispatcher: Pick<Dispatcher, 'receive'>
  /** Connections and upgrades per client address. */
  readonly addresses: Pick<ConnectionCounts, 'enter' | 'leave'>
  /** An upgrade that takes longer than this never opens. */
  readonly handshakeTimeoutMs: number
  /** Name of this node in `welcome`. */
  readonly node: string
  readonly version: string
  readonly heartbeatMs: number
  /** How long and how many message ids are remembered, for `welcome`. */
  readonly dedupe: Pick<Welcome['limits'], 'dedupeWindowMs' | 'dedupeMaxIds'>
  /** While draining: the time until all connections are closed. */
  readonly drainRetryAfterMs: () => number | undefined
}

/** An upgrade that passed the checks, and whose connection is not open yet. */
interface Admission {
  /** See {@link countedAddress}. */
  readonly address: string | undefined
  /** Absent while the server waits for a token. */
  identity: Identity | undefined
  /** Why the token was refused. The session tells the client with a close code, which browsers can see. */
  refusal: unknown
  sinceMs: number
}

/** The transport ends an upgrade at most this much after `handshakeTimeoutMs`. */
const TRANSPORT_DELAY_MS = 1_000
/** A client that came too late goes to another node, so it need not wait for the end of the drain. */
const MAX_RETRY_AFTER_MS = 1_000
/** An attached server may get any number of requests from beyond this machine. */
const OUTSIDER_REPORT_MS = 60_000

/** The client is done (RFC 6455 §7.4.1). A page that is left sends 1001 instead, and may come back with a reload. */
const NORMAL_CLOSURE = 1000

/** Decides about upgrades, creates sessions, and passes messages to the dispatcher. */
export class Gateway implements TransportSink {
  readonly #context: GatewayContext
  readonly #refusedOrigins: RefusedOrigins
  /** Upgrades that are not open yet, oldest first. */
  readonly #admissions = new Map<UpgradeId, Admission>()
  /** Addresses of the open connections that are counted. */
  readonly #addresses = new Map<ConnectionId, string>()
  #expiry: Deadline | undefined
  #reportedOutsiderAtMs = Number.NEGATIVE_INFINITY
  #welcomes: { [auth in Welcome['auth']]?: string } = {}

  constructor(context: GatewayContext) {
    this.#context = context
    this.#refusedOrigins = new RefusedOrigins(context.services.logger, context.services.now)
  }

  /** The limits have changed: tells newcomers the present ones. */
  limitsChanged(): void {
    this.#welcomes = {}
  }

  upgrade(request: UpgradeRequest): void {
    const { drainRetryAfterMs, services, transport } = this.#context
    const retryAfterMs = drainRetryAfterMs()
    try {
      if (retryAfterMs !== undefined) throw new WebMQError('E_DRAIN')
      const admissible = examineUpgrade(request, this.#context)
      this.#admit(request)
      const { verifier } = services
      if (verifier === undefined) this.#accept(request.id, admissible, ANONYMOUS, undefined)
      else if (admissible.token === undefined) this.#accept(request.id, admissible, undefined, undefined)
      else this.#verify(request.id, admissible, verifier, admissible.token)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      services.logger.debug(
        { code: error.code, path: request.path, remoteAddress: request.remoteAddress },
        'upgrade refused',
      )
      if (error.code === 'E_INSECURE') this.#reportOutsider(request.remoteAddress)
      if (error.code === 'E_ORIGIN_FORBIDDEN') this.#refusedOrigins.report(request.header('origin'))
      const retryAfter =
        retryAfterMs === undefined ? {} : { 'retry-after': `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}` }
      transport.reject(request.id, rejectionOf(error, retryAfter))
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    const admission = this.#admissions.get(upgrade)
    this.#admissions.delete(upgrade)
    const session = new Session(connection, this.#context.services)
    this.#context.sessions.add(session)
    const { identity, refusal, address } = admission ?? { refusal: new WebMQError('E_INTERNAL') }
    if (address !== undefined) this.#addresses.set(connection, address)
    try {
      if (refusal !== undefined) throw refusal
      if (identity === undefined) session.awaitToken()
      else session.authenticate(identity)
    } catch (error) {
      session.refuseToken(error, undefined)
      return
    }
    this.#context.services.transport.send(connection, this.#welcome(session), false)
    // The upgrade was accepted before the drain began.
    const retryAfterMs = this.#context.drainRetryAfterMs()
    if (retryAfterMs !== undefined) session.end('E_DRAIN', Math.round(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)))
  }

  message(connection: ConnectionId, data: Uint8Array, isBinary: boolean): void {
    const session = this.#context.sessions.get(connection)
    if (session !== undefined) this.#context.dispatcher.receive(session, data, isBinary)
  }

  drained(connection: ConnectionId): void {
    this.#context.services.replays.drained(connection)
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    const session = this.#context.sessions.remove(connection, code === NORMAL_CLOSURE)
    const address = this.#addresses.get(connection)
    if (address !== undefined) this.#context.addresses.leave(address)
    this.#addresses.delete(connection)
    this.#context.services.logger.debug(
      { session: session?.id, user: session?.userId, code, reason },
      'connection closed',
    )
  }

  failed(error: Error): void {
    this.#context.services.logger.error({ err: error }, 'the transport failed')
  }

  /** A bad token does not refuse the upgrade, because a page cannot see why. The open session tells it. */
  #verify(upgrade: UpgradeId, admissible: AdmissibleUpgrade, verifier: TokenVerifier, token: string): void {
    verifier.verify(token).then(
      (identity) => this.#accept(upgrade, admissible, identity, undefined),
      (refusal: unknown) => this.#accept(upgrade, admissible, undefined, refusal),
    )
  }

  #accept(
    upgrade: UpgradeId,
    { subprotocol }: AdmissibleUpgrade,
    identity: Identity | undefined,
    refusal: unknown,
  ): void {
    const admission = this.#admissions.get(upgrade)
    // The token took so long that the transport has ended the upgrade.
    if (admission === undefined) return
    admission.identity = identity
    admission.refusal = refusal
    admission.sinceMs = this.#context.services.now()
    // Last in the order of expiry.
    this.#admissions.delete(upgrade)
    this.#admissions.set(upgrade, admission)
    this.#context.transport.accept(upgrade, subprotocol === undefined ? {} : { subprotocol })
  }

  /** @throws {WebMQError} `E_CONNECTION_LIMIT` */
  #admit({ id, remoteAddress }: UpgradeRequest): void {
    this.#expire()
    const address = countedAddress(remoteAddress)
    if (address !== undefined) this.#context.addresses.enter(address)
    const sinceMs = this.#context.services.now()
    this.#admissions.set(id, { address, identity: undefined, refusal: undefined, sinceMs })
    this.#expireLater()
  }

  /** Removes upgrades whose clients went away: nobody tells of the end of one that was not accepted. */
  #expire(): void {
    const { handshakeTimeoutMs, addresses, services } = this.#context
    const latestMs = services.now() - handshakeTimeoutMs - TRANSPORT_DELAY_MS
    for (const [id, { sinceMs, address }] of this.#admissions) {
      if (sinceMs > latestMs) return
      this.#admissions.delete(id)
      if (address !== undefined) addresses.leave(address)
    }
  }

  #expireLater(): void {
    const { handshakeTimeoutMs, services } = this.#context
    this.#expiry ??= services.deadlines.set(services.now() + handshakeTimeoutMs + TRANSPORT_DELAY_MS, () => {
      this.#expiry = undefined
      this.#expire()
      if (this.#admissions.size > 0) this.#expireLater()
    })
  }

  #reportOutsider(remoteAddress: string): void {
    const { logger, now } = this.#context.services
    if (now() - this.#reportedOutsiderAtMs < OUTSIDER_REPORT_MS) return
    this.#reportedOutsiderAtMs = now()
    logger.warn(
      { remoteAddress },
      'without tokens, only clients of this machine may connect, and none behind a proxy; set a key for tokens ' +
        '(jwt.secret, jwt.publicKey or jwt.jwksUrl), or allow everyone with insecure',
    )
  }

  #welcome(session: Session): string {
    const { verifier } = this.#context.services
    const auth = verifier === undefined ? 'none' : session.state === 'active' ? 'done' : 'required'
    this.#welcomes[auth] ??= this.#welcomeUpToSession(auth)
    const expiresInMs = session.expiresInMs()
    return `${this.#welcomes[auth]}${session.id}"${expiresInMs === undefined ? '' : `,"expiresInMs":${expiresInMs}`}}`
  }

  /** The `welcome` text that all sessions share, up to the session id. */
  #welcomeUpToSession(auth: Welcome['auth']): string {
    const { services, node, version, heartbeatMs } = this.#context
    const { maxPayloadBytes, maxListensPerConnection, maxPendingPublishBytes, workPerSecond, workBurst } =
      services.limits
    const { maxWords, maxHashes, maxSearchListensPerConnection } = services.limits
    const limits = {
      maxPayloadBytes,
      maxKeyBytes: MAX_KEY_BYTES,
      maxWords,
      maxHashes,
      maxListensPerConnection,
      maxSearchListensPerConnection,
      maxPendingPublishBytes,
      workPerSecond,
      workBurst,
      ...this.#context.dedupe,
    }
    const shared = { protocol: 'webmq.v1', auth, node, version, heartbeatMs, limits } as const
    return encodeServerMessage({ verb: 'welcome', ...shared, session: '' }).slice(0, -'"}'.length)
  }
}
