import { encodeServerMessage, WebMQError, type Welcome } from 'webmq-client/protocol'
import type { Deadline } from '../deadlines.js'
import type { ConnectFacts } from '../hooks/index.js'
import { countedAddress } from '../identity/client-address.js'
import { ANONYMOUS, type Identity, type TokenVerifier, UNIDENTIFIED } from '../identity/index.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import { isPromise } from '../ports/maybe-promise.js'
import type { ConnectionId, Transport, TransportSink, UpgradeId, UpgradeRequest } from '../ports/transport.js'
import type { ConnectionCounts } from '../session/connection-counts.js'
import type { Dispatcher } from '../session/dispatcher.js'
import { Session, type SessionServices } from '../session/session.js'
import type { SessionTable } from '../session/table.js'
import { RefusedOrigins } from './refused-origins.js'
import { type AdmissibleUpgrade, examineUpgrade, rejectionOf, type UpgradePolicy } from './upgrade.js'
import { welcomeLimits } from './welcome-limits.js'

/** What a {@link Gateway} works with. */
export interface GatewayContext extends UpgradePolicy {
  readonly transport: Pick<Transport, 'accept' | 'reject'>
  readonly services: SessionServices
  readonly sessions: SessionTable
  readonly dispatcher: Pick<Dispatcher, 'receive' | 'waitFor'>
  /** Finds out which client an upgrade is from. */
  readonly proxies: Pick<TrustedProxies, 'clientAddress'>
  /** Whether clients that no token and no hook identifies may do anything. */
  readonly insecure: boolean
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
  /** While draining: the time after which a refused client may try again. */
  readonly drainRetryAfterMs: () => number | undefined
}

/** An upgrade that passed the checks, and whose connection is not open yet. */
interface Admission {
  /** Of the client. */
  readonly address: string
  /** Absent while the server waits for a token. */
  identity: Identity | undefined
  /** Why the token was refused. The session tells the client with a close code, which browsers can see. */
  refusal: unknown
  /** For the hook `connect`, if there is one. */
  readonly facts: ConnectFacts | undefined
  sinceMs: number
}

/** The transport ends an upgrade at most this much after `handshakeTimeoutMs`. */
const TRANSPORT_DELAY_MS = 1_000
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
  #expiry: Deadline | undefined
  #reportedOutsiderAtMs = Number.NEGATIVE_INFINITY
  readonly #welcomes: { [auth in Welcome['auth']]?: string } = {}

  constructor(context: GatewayContext) {
    this.#context = context
    this.#refusedOrigins = new RefusedOrigins(context.services.logger, context.services.now)
  }

  upgrade(request: UpgradeRequest): void {
    const { drainRetryAfterMs, proxies, services, transport } = this.#context
    const retryAfterMs = drainRetryAfterMs()
    const address = proxies.clientAddress(request.remoteAddress, (name) => request.header(name))
    try {
      if (retryAfterMs !== undefined) throw new WebMQError('E_DRAIN')
      const admissible = examineUpgrade(request, this.#context, address)
      this.#admit(request, address)
      const { verifier } = services
      if (verifier === undefined) this.#accept(request.id, admissible, this.#anonymous(), undefined)
      else if (admissible.token === undefined) this.#accept(request.id, admissible, undefined, undefined)
      else this.#verify(request.id, admissible, verifier, admissible.token)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      services.logger.debug({ code: error.code, path: request.path, remoteAddress: address }, 'upgrade refused')
      if (error.code === 'E_INSECURE') this.#reportOutsider(address)
      if (error.code === 'E_ORIGIN_FORBIDDEN') this.#refusedOrigins.report(request.header('origin'))
      services.measurements.refusedUpgrades.add(error.code)
      const facts = { address: request.remoteAddress, origin: request.header('origin') }
      services.observer?.upgradeRefused?.(facts, error.code)
      const retryAfter = retryAfterMs === undefined ? {} : { 'retry-after': `${Math.ceil(retryAfterMs / 1_000)}` }
      transport.reject(request.id, rejectionOf(error, retryAfter))
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    const admission = this.#admissions.get(upgrade)
    this.#admissions.delete(upgrade)
    const missing = { refusal: new WebMQError('E_INTERNAL'), address: '', identity: undefined, facts: undefined }
    const { identity, refusal, address, facts } = admission ?? missing
    const session = new Session(connection, this.#context.services, address)
    this.#context.sessions.add(session)
    if (facts !== undefined) session.remember(facts)
    try {
      if (refusal !== undefined) throw refusal
      const admitted = identity === undefined ? session.awaitToken() : session.admit(identity)
      if (isPromise(admitted)) {
        const refuse = (error: unknown) => session.refuseToken(error, undefined)
        this.#context.dispatcher.waitFor(session, admitted.then(() => this.#greet(session)).catch(refuse))
        return
      }
    } catch (error) {
      session.refuseToken(error, undefined)
      return
    }
    this.#greet(session)
  }

  #greet(session: Session): void {
    if (session.isClosed) return
    this.#context.services.transport.send(session.connection, this.#welcome(session), false)
    // The upgrade was accepted before the drain began.
    const retryAfterMs = this.#context.drainRetryAfterMs()
    if (retryAfterMs !== undefined) session.end('E_DRAIN', retryAfterMs)
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
    const { hooks, logger, measurements, now, observer } = this.#context.services
    measurements.closed(code)
    if (session === undefined) {
      logger.debug({ code, reason }, 'connection closed')
      return
    }
    const { id, userId: user, address, openedAtMs } = session
    this.#leave(address)
    const durationMs = now() - openedAtMs
    if (session.wasActive) {
      observer?.disconnected?.(session, code, reason, durationMs)
      if (hooks?.hasDisconnect === true) hooks.disconnect(session, code, reason, durationMs)
    }
    logger.debug({ session: id, user, address, durationMs, code, reason }, 'connection closed')
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

  /** The identity of a client without a token, before a hook may give it another. */
  #anonymous(): Identity {
    const { services, insecure } = this.#context
    return services.hooks?.hasConnect === true && !insecure ? UNIDENTIFIED : ANONYMOUS
  }

  /** @throws {WebMQError} `E_CONNECTION_LIMIT` */
  #admit(request: UpgradeRequest, address: string): void {
    this.#expire()
    const counted = countedAddress(address)
    if (counted !== undefined) this.#context.addresses.enter(counted)
    const sinceMs = this.#context.services.now()
    const hasHook = this.#context.services.hooks?.hasConnect === true
    const facts = hasHook ? { path: request.path, query: request.query, headers: request.headers } : undefined
    this.#admissions.set(request.id, { address, identity: undefined, refusal: undefined, facts, sinceMs })
    this.#expireLater()
  }

  #leave(address: string): void {
    const counted = countedAddress(address)
    if (counted !== undefined) this.#context.addresses.leave(counted)
  }

  /** Removes upgrades whose clients went away: nobody tells of the end of one that was not accepted. */
  #expire(): void {
    const { handshakeTimeoutMs, services } = this.#context
    const latestMs = services.now() - handshakeTimeoutMs - TRANSPORT_DELAY_MS
    for (const [id, { sinceMs, address }] of this.#admissions) {
      if (sinceMs > latestMs) return
      this.#admissions.delete(id)
      this.#leave(address)
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
    const { identity } = session
    this.#welcomes[auth] ??= this.#welcomeUpToSession(auth, ANONYMOUS)
    const upToSession = identity?.limits === undefined ? this.#welcomes[auth] : this.#welcomeUpToSession(auth, identity)
    const expiresInMs = session.expiresInMs()
    return `${upToSession}${session.id}"${expiresInMs === undefined ? '' : `,"expiresInMs":${expiresInMs}`}}`
  }

  /** The `welcome` text up to the session id, which all sessions share that have the limits of the options. */
  #welcomeUpToSession(auth: Welcome['auth'], identity: Identity): string {
    const { services, node, version, heartbeatMs } = this.#context
    const limits = { ...welcomeLimits(services.limits.of(identity)), ...this.#context.dedupe }
    const shared = { protocol: 'webmq.v1', auth, node, version, heartbeatMs, limits } as const
    return encodeServerMessage({ verb: 'welcome', ...shared, session: '' }).slice(0, -'"}'.length)
  }
}
