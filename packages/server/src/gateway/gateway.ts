import { encodeServerMessage, MAX_KEY_BYTES, WebMQError, type Welcome } from 'webmq-client/protocol'
import type { Deadline } from '../deadlines.js'
import { countedAddress } from '../identity/client-address.js'
import { ANONYMOUS, type Identity, mayListen, type TokenVerifier } from '../identity/index.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import type {
  AcceptOptions,
  ConnectionId,
  Transport,
  TransportSink,
  UpgradeId,
  UpgradeRequest,
} from '../ports/transport.js'
import { encodeSseEvent, encodeSseServerMessage } from '../routing/sse-events.js'
import type { ConnectionCounts } from '../session/connection-counts.js'
import type { Dispatcher } from '../session/dispatcher.js'
import { Session, type SessionServices } from '../session/session.js'
import { StreamListens } from '../session/sse/listens.js'
import { readStreamRequest, type StreamRequest } from '../session/sse/request.js'
import type { SessionTable } from '../session/table.js'
import { RefusedOrigins } from './refused-origins.js'
import { corsHeaders, streamRejectionOf } from './stream-answers.js'
import { type AdmissibleUpgrade, examineStream, examineUpgrade, rejectionOf, type UpgradePolicy } from './upgrade.js'

/** What a {@link Gateway} works with. */
export interface GatewayContext extends UpgradePolicy {
  readonly transport: Pick<Transport, 'accept' | 'reject'>
  readonly services: SessionServices
  readonly sessions: SessionTable
  readonly dispatcher: Pick<Dispatcher, 'receive'>
  /** Finds out which client an upgrade is from. */
  readonly proxies: Pick<TrustedProxies, 'clientAddress'>
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
  sinceMs: number
  /** Present: an event stream. */
  readonly stream: StreamRequest | undefined
}

/** A reader reconnects after this time and up to as much again, by chance: many do not come back at once. */
const STREAM_RETRY_MS = 1_000

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
  readonly #streamServices: SessionServices
  /** Upgrades that are not open yet, oldest first. */
  readonly #admissions = new Map<UpgradeId, Admission>()
  #expiry: Deadline | undefined
  #reportedOutsiderAtMs = Number.NEGATIVE_INFINITY
  readonly #welcomes: { [auth in Welcome['auth']]?: string } = {}

  constructor(context: GatewayContext) {
    this.#context = context
    this.#refusedOrigins = new RefusedOrigins(context.services.logger, context.services.now)
    this.#streamServices = { ...context.services, encode: encodeSseServerMessage }
  }

  upgrade(request: UpgradeRequest): void {
    const { drainRetryAfterMs, proxies, services, transport } = this.#context
    const retryAfterMs = drainRetryAfterMs()
    const address = proxies.clientAddress(request.remoteAddress, (name) => request.header(name))
    try {
      if (retryAfterMs !== undefined) throw new WebMQError('E_DRAIN')
      const { verifier } = services
      if (request.kind === 'sse') {
        this.#upgradeStream(request, address)
        return
      }
      const admissible = examineUpgrade(request, this.#context, address)
      this.#admit(request.id, address)
      if (verifier === undefined) this.#accept(request.id, admissible, ANONYMOUS, undefined)
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
      const isStream = request.kind === 'sse'
      if (isStream) this.#rejectStream(request, error, retryAfter)
      else transport.reject(request.id, rejectionOf(error, retryAfter))
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    const admission = this.#admissions.get(upgrade)
    this.#admissions.delete(upgrade)
    const { identity, refusal, address, stream } = admission ?? { refusal: new WebMQError('E_INTERNAL'), address: '' }
    const services = stream === undefined ? this.#context.services : this.#streamServices
    const session = new Session(connection, services, address)
    this.#context.sessions.add(session)
    try {
      if (refusal !== undefined) throw refusal
      if (identity === undefined) session.awaitToken()
      else session.authenticate(identity)
    } catch (error) {
      session.refuseToken(error, undefined)
      return
    }
    services.transport.send(
      connection,
      stream === undefined ? this.#welcome(session) : this.#streamWelcome(session),
      false,
    )
    // The upgrade was accepted before the drain began.
    const retryAfterMs = this.#context.drainRetryAfterMs()
    if (retryAfterMs !== undefined) session.end('E_DRAIN', retryAfterMs)
    else if (stream !== undefined) this.#beginStream(session, stream)
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
    const { logger, measurements, now, observer } = this.#context.services
    measurements.closed(code)
    if (session === undefined) {
      logger.debug({ code, reason }, 'connection closed')
      return
    }
    const { id, userId: user, address, openedAtMs } = session
    this.#leave(address)
    const durationMs = now() - openedAtMs
    if (session.wasActive) observer?.disconnected?.(session, code, reason, durationMs)
    logger.debug({ session: id, user, address, durationMs, code, reason }, 'connection closed')
  }

  failed(error: Error): void {
    this.#context.services.logger.error({ err: error }, 'the transport failed')
  }

  /** Checks everything before the response begins: a client sees why it is refused. */
  #upgradeStream(request: UpgradeRequest, address: string): void {
    const { services } = this.#context
    const { token } = examineStream(request, this.#context, address)
    const stream = readStreamRequest(request, services.limits)
    const accept = (identity: Identity) => {
      const forbidden = stream.patterns.find((pattern) => identity !== ANONYMOUS && !mayListen(identity, pattern))
      if (forbidden !== undefined) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${forbidden}` })
      this.#accept(request.id, { headers: corsHeaders(request, this.#context) }, identity, undefined)
    }
    if (services.verifier !== undefined && token === undefined) {
      throw new WebMQError('E_UNAUTHENTICATED', { detail: 'send a token in the Authorization header' })
    }
    this.#admit(request.id, address, stream)
    const verified =
      services.verifier === undefined || token === undefined
        ? Promise.resolve(ANONYMOUS)
        : services.verifier.verify(token)
    verified.then(accept).catch((error: unknown) => this.#refuseStream(request, error))
  }

  #refuseStream(request: UpgradeRequest, error: unknown): void {
    const { logger, measurements, observer } = this.#context.services
    const known = error instanceof WebMQError ? error : new WebMQError('E_INTERNAL')
    if (known.code === 'E_INTERNAL') logger.error({ err: error }, 'a request for an event stream could not be handled')
    const admission = this.#admissions.get(request.id)
    if (admission === undefined) return
    const { address } = admission
    logger.debug({ code: known.code, path: request.path, remoteAddress: address }, 'upgrade refused')
    measurements.refusedUpgrades.add(known.code)
    observer?.upgradeRefused?.({ address, origin: request.header('origin') }, known.code)
    this.#admissions.delete(request.id)
    this.#leave(address)
    this.#rejectStream(request, known, {})
  }

  #rejectStream(request: UpgradeRequest, error: WebMQError, headers: Readonly<Record<string, string>>): void {
    const cors = corsHeaders(request, this.#context)
    this.#context.transport.reject(request.id, streamRejectionOf(error, { ...headers, ...cors }))
  }

  #beginStream(session: Session, request: StreamRequest): void {
    new StreamListens(session, request).begin().catch((error: unknown) => {
      if (session.isClosed) return
      const { code } = session.refuse(error, undefined)
      session.end(code)
    })
  }

  #streamWelcome(session: Session): string {
    const { node, version } = this.#context
    const expiresInMs = session.expiresInMs()
    const retryMs = STREAM_RETRY_MS * (1 + Math.random())
    const data = { session: session.id, node, version, ...(expiresInMs === undefined ? {} : { expiresInMs }) }
    return encodeSseEvent({ name: 'welcome', retryMs, data })
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
    { subprotocol, headers }: AdmissibleUpgrade & Pick<AcceptOptions, 'headers'>,
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
    this.#context.transport.accept(upgrade, {
      ...(subprotocol === undefined ? undefined : { subprotocol }),
      ...(headers === undefined ? undefined : { headers }),
    })
  }

  /** @throws {WebMQError} `E_CONNECTION_LIMIT` */
  #admit(id: UpgradeId, address: string, stream?: StreamRequest): void {
    this.#expire()
    const counted = countedAddress(address)
    if (counted !== undefined) this.#context.addresses.enter(counted)
    const sinceMs = this.#context.services.now()
    this.#admissions.set(id, { address, identity: undefined, refusal: undefined, sinceMs, stream })
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
