import { closeCodeOf, encodeServerMessage, WebMQError, type Welcome } from 'webmq-client/protocol'
import type { Deadline } from '../deadlines.js'
import { type ConnectFacts, HookRefusal } from '../hooks/index.js'
import { countedAddress } from '../identity/client-address.js'
import { ANONYMOUS, type Identity, mayListen, type TokenVerifier, UNIDENTIFIED } from '../identity/index.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import { isPromise } from '../ports/maybe-promise.js'
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
  /** While draining: the time until all connections are closed. */
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
  /** Present: an event stream. */
  readonly stream: StreamRequest | undefined
}

/** Of an upgrade that the gateway has not let in. */
const NO_ADMISSION: Omit<Admission, 'sinceMs'> = {
  address: '',
  identity: undefined,
  refusal: new WebMQError('E_INTERNAL'),
  facts: undefined,
  stream: undefined,
}

/** A reader reconnects after this time and up to as much again, by chance: many do not come back at once. */
const STREAM_RETRY_MS = 1_000

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
  readonly #streamServices: SessionServices
  /** Upgrades that are not open yet, oldest first. */
  readonly #admissions = new Map<UpgradeId, Admission>()
  #expiry: Deadline | undefined
  #reportedOutsiderAtMs = Number.NEGATIVE_INFINITY
  #welcomes: { [auth in Welcome['auth']]?: string } = {}

  constructor(context: GatewayContext) {
    this.#context = context
    this.#refusedOrigins = new RefusedOrigins(context.services.logger, context.services.now)
    this.#streamServices = { ...context.services, encode: encodeSseServerMessage }
  }

  /** The limits have changed: tells newcomers the present ones. */
  limitsChanged(): void {
    this.#welcomes = {}
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
      this.#admit(request, address)
      if (verifier === undefined) this.#accept(request.id, admissible, this.#anonymous(), undefined)
      else if (admissible.token === undefined) this.#accept(request.id, admissible, undefined, undefined)
      else this.#verify(request.id, admissible, verifier, admissible.token)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      services.logger.debug({ code: error.code, path: request.path, remoteAddress: address }, 'upgrade refused')
      if (error.code === 'E_INSECURE') this.#reportOutsider(address)
      if (error.code === 'E_ORIGIN_FORBIDDEN') this.#refusedOrigins.report(request.header('origin'))
      services.measurements.refusedUpgrades.add(error.code)
      services.observer?.upgradeRefused?.({ address, origin: request.header('origin') }, error.code)
      const retryAfter =
        retryAfterMs === undefined ? {} : { 'retry-after': `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}` }
      const isStream = request.kind === 'sse'
      if (isStream) this.#rejectStream(request, error, retryAfter)
      else transport.reject(request.id, rejectionOf(error, retryAfter))
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    const admission = this.#admissions.get(upgrade)
    this.#admissions.delete(upgrade)
    const { identity, refusal, address, facts, stream } = admission ?? NO_ADMISSION
    const services = stream === undefined ? this.#context.services : this.#streamServices
    const session = new Session(connection, services, address)
    this.#context.sessions.add(session)
    if (facts !== undefined) session.remember(facts)
    try {
      if (refusal !== undefined) throw refusal
      const admitted = identity === undefined ? session.awaitToken() : session.admit(identity)
      if (isPromise(admitted)) {
        const refuse = (error: unknown) => session.refuseToken(error, undefined)
        this.#context.dispatcher.waitFor(session, admitted.then(() => this.#greet(session, stream)).catch(refuse))
        return
      }
    } catch (error) {
      session.refuseToken(error, undefined)
      return
    }
    this.#greet(session, stream)
  }

  #greet(session: Session, stream: StreamRequest | undefined): void {
    if (session.isClosed) return
    const welcome = stream === undefined ? this.#welcome(session) : this.#streamWelcome(session)
    this.#context.services.transport.send(session.connection, welcome, false)
    // The upgrade was accepted before the drain began.
    const retryAfterMs = this.#context.drainRetryAfterMs()
    if (retryAfterMs !== undefined) session.end('E_DRAIN', Math.round(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)))
    else if (stream !== undefined) this.#beginStream(session, stream)
  }

  message(connection: ConnectionId, data: Uint8Array, isBinary: boolean): void {
    const session = this.#context.sessions.get(connection)
    if (session !== undefined) this.#context.dispatcher.receive(session, data, isBinary)
  }

  drained(connection: ConnectionId): void {
    this.#context.services.drains.drained(connection)
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

  /** Checks everything before the response begins: a client sees why it is refused. */
  #upgradeStream(request: UpgradeRequest, address: string): void {
    const { services } = this.#context
    const { token } = examineStream(request, this.#context, address)
    const stream = readStreamRequest(request, services.limits.defaults)
    const accept = (identity: Identity) => {
      const decides = services.hooks?.hasConnect === true
      const isForbidden = (pattern: string) => identity !== ANONYMOUS && !mayListen(identity, pattern)
      // A hook may grant more once the stream is open.
      const forbidden = decides ? undefined : stream.patterns.find(isForbidden)
      if (forbidden !== undefined) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${forbidden}` })
      this.#accept(request.id, { headers: corsHeaders(request, this.#context) }, identity, undefined)
    }
    if (services.verifier !== undefined && token === undefined) {
      throw new WebMQError('E_UNAUTHENTICATED', { detail: 'send a token in the Authorization header' })
    }
    this.#admit(request, address, stream)
    const verified =
      services.verifier === undefined || token === undefined
        ? Promise.resolve(this.#anonymous())
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
      this.#context.services.observer?.refused?.(session, 'listen', code, undefined)
      // The code of a hook may be in no table.
      const isTerminal = error instanceof HookRefusal && closeCodeOf(error.code) === undefined
      session.end(isTerminal ? 'E_CONNECTION_REFUSED' : code)
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

  /** The identity of a client without a token, before a hook may give it another. */
  #anonymous(): Identity {
    const { services, insecure } = this.#context
    return services.hooks?.hasConnect === true && !insecure ? UNIDENTIFIED : ANONYMOUS
  }

  /** @throws {WebMQError} `E_CONNECTION_LIMIT` */
  #admit(request: UpgradeRequest, address: string, stream?: StreamRequest): void {
    this.#expire()
    const counted = countedAddress(address)
    if (counted !== undefined) this.#context.addresses.enter(counted)
    const sinceMs = this.#context.services.now()
    const hasHook = this.#context.services.hooks?.hasConnect === true
    const facts = hasHook ? { path: request.path, query: request.query, headers: request.headers } : undefined
    this.#admissions.set(request.id, { address, identity: undefined, refusal: undefined, facts, sinceMs, stream })
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
