import { closeCodeOf, WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../base/hook-refusal.js'
import { logBug } from '../../base/log-bug.js'
import { LogPace } from '../../base/log-pace.js'
import { isPromise } from '../../base/maybe-promise.js'
import { assertMayListen } from '../../identity/access.js'
import { ANONYMOUS, type Identity, UNIDENTIFIED } from '../../identity/index.js'
import type { TrustedProxies } from '../../identity/trusted-proxies.js'
import type { MessageRun } from '../../ports/message-run.js'
import type { ConnectionId, Transport, TransportSink, UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import type { Refusals } from '../../publishing/refusals.js'
import type { Dispatcher } from '../dispatcher.js'
import { refuseToken } from '../handlers/auth.js'
import type { SessionServices } from '../services.js'
import { Session } from '../session.js'
import type { SessionTable } from '../table.js'
import { type Admission, Admissions, type AdmissionsContext } from './admissions.js'
import type { AskedEventStream, EventStreams } from './event-streams.js'
import { RefusedOrigins } from './refused-origins.js'
import {
  type AdmissibleUpgrade,
  corsHeaders,
  examineStream,
  examineUpgrade,
  rejectionOf,
  streamRejectionOf,
  type UpgradePolicy,
} from './upgrade.js'
import { Welcomes, type WelcomesContext } from './welcomes.js'

export interface GatewayContext extends UpgradePolicy, AdmissionsContext, WelcomesContext {
  readonly transport: Pick<Transport, 'accept' | 'reject'>
  readonly services: SessionServices
  readonly sessions: SessionTable
  readonly eventStreams: EventStreams
  readonly dispatcher: Pick<Dispatcher, 'receive' | 'receiveRun' | 'waitFor'>
  readonly refusals: Pick<Refusals, 'add'>
  readonly proxies: Pick<TrustedProxies, 'clientAddress'>
  /** Whether clients that no token and no hook identifies may do anything. */
  readonly insecure: boolean
  /** While draining: the time until all connections are closed. */
  readonly drainRetryAfterMs: () => number | undefined
}

/** Of an upgrade that the gateway has not let in. */
const NO_ADMISSION: Omit<Admission, 'sinceMs'> = {
  address: '',
  identity: undefined,
  refusal: new WebMQError('E_INTERNAL'),
  facts: undefined,
  stream: undefined,
}

/** A client that came too late goes to another node, so it need not wait for the end of the drain. */
const MAX_RETRY_AFTER_MS = 1_000
/** Any number of requests may come from beyond this machine, through a proxy. */
const OUTSIDER_REPORT_MS = 60_000

/** The client is done (RFC 6455 §7.4.1). A page that is left sends 1001 instead, and may come back with a reload. */
const NORMAL_CLOSURE = 1000

/** Decides about upgrades to WebSockets and event streams, creates sessions, and passes messages to the dispatcher. */
export class Gateway implements TransportSink {
  readonly #context: GatewayContext
  readonly #refusedOrigins: RefusedOrigins
  readonly #streamServices: SessionServices
  readonly #admissions: Admissions
  readonly #welcomes: Welcomes
  readonly #outsiderPace = new LogPace(OUTSIDER_REPORT_MS)

  constructor(context: GatewayContext) {
    this.#context = context
    this.#refusedOrigins = new RefusedOrigins(context.services.logger, context.services.now)
    this.#streamServices = { ...context.services, door: 'sse', encode: context.eventStreams.encode }
    this.#admissions = new Admissions(context)
    this.#welcomes = new Welcomes(context)
  }

  limitsChanged(): void {
    this.#welcomes.limitsChanged()
  }

  upgrade(request: UpgradeRequest): void {
    const { drainRetryAfterMs, eventStreams, proxies, services } = this.#context
    const address = proxies.clientAddress(request.remoteAddress, (name) => request.header(name))
    try {
      if (drainRetryAfterMs() !== undefined) throw new WebMQError('E_DRAIN')
      const isStream = request.kind === 'sse'
      const admissible = (isStream ? examineStream : examineUpgrade)(request, this.#context)
      const stream = isStream ? eventStreams.read(request, services.limits.defaults) : undefined
      const { verifier } = services
      const { token } = admissible
      if (isStream && verifier !== undefined && token === undefined) {
        throw new WebMQError('E_UNAUTHENTICATED', { detail: 'send a token in the Authorization header' })
      }
      if (verifier === undefined) stream?.assertServed()
      this.#admissions.add(request, address, stream)
      if (verifier === undefined) this.#accept(request, admissible, this.#anonymous(), undefined)
      else if (token === undefined) this.#accept(request, admissible, undefined, undefined)
      else this.#verify(request, admissible, stream, verifier.verify(token))
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      this.#refuse(request, error, address)
    }
  }

  open(connection: ConnectionId, upgrade: UpgradeId): void {
    const { identity, refusal, address, facts, stream } = this.#admissions.take(upgrade) ?? NO_ADMISSION
    const services = stream === undefined ? this.#context.services : this.#streamServices
    const session = new Session(connection, services, address)
    this.#context.sessions.add(session)
    if (facts !== undefined) session.remember(facts)
    try {
      if (refusal !== undefined) throw refusal
      const admitted = identity === undefined ? session.awaitToken() : session.admit(identity)
      if (isPromise(admitted)) {
        const refuse = (error: unknown) => refuseToken(session, error, undefined)
        this.#context.dispatcher.waitFor(session, admitted.then(() => this.#greet(session, stream)).catch(refuse))
        return
      }
    } catch (error) {
      refuseToken(session, error, undefined)
      return
    }
    this.#greet(session, stream)
  }

  #greet(session: Session, stream: AskedEventStream | undefined): void {
    if (session.isClosed) return
    const welcome = stream === undefined ? this.#welcomes.message(session) : this.#context.eventStreams.welcome(session)
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

  messageRun(connection: ConnectionId, run: MessageRun): void {
    const session = this.#context.sessions.get(connection)
    if (session !== undefined) this.#context.dispatcher.receiveRun(session, run)
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
    this.#admissions.leave(address)
    const durationMs = now() - openedAtMs
    if (session.wasActive) {
      observer?.disconnected?.(session, code, reason, durationMs)
      hooks?.disconnect(session, code, reason, durationMs)
    }
    logger.debug({ session: id, user, address, durationMs, code, reason }, 'connection closed')
  }

  failed(error: Error): void {
    logBug(this.#context.services.logger, { err: error }, 'the transport failed')
  }

  /**
   * A WebSocket is accepted with a bad token, because a page cannot see why an upgrade is refused: the open session tells it.
   * An event stream is refused before its response begins.
   */
  #verify(
    request: UpgradeRequest,
    admissible: AdmissibleUpgrade,
    stream: AskedEventStream | undefined,
    verified: Promise<Identity>,
  ): void {
    if (stream === undefined) {
      verified.then(
        (identity) => this.#accept(request, admissible, identity, undefined),
        (refusal: unknown) => this.#accept(request, admissible, undefined, refusal),
      )
      return
    }
    const accept = (identity: Identity) => {
      if (this.#context.services.revocations.covers(identity)) throw new WebMQError('E_TOKEN_REVOKED')
      this.#assertMayListen(identity, stream)
      stream.assertServed()
      this.#accept(request, admissible, identity, undefined)
    }
    verified.then(accept).catch((error: unknown) => {
      const admission = this.#admissions.take(request.id)
      if (admission === undefined) return
      this.#admissions.leave(admission.address)
      const isKnown = error instanceof WebMQError
      if (!isKnown) logBug(this.#context.services.logger, { err: error }, 'a token could not be examined')
      this.#refuse(request, isKnown ? error : new WebMQError('E_INTERNAL'), admission.address)
    })
  }

  /** @throws {WebMQError} `E_FORBIDDEN`. With a hook `connect` nothing is refused yet: it may grant more. */
  #assertMayListen(identity: Identity, { patterns }: AskedEventStream): void {
    if (this.#context.services.hooks?.has('connect') === true) return
    for (const pattern of patterns) assertMayListen({ door: 'sse', identity }, pattern)
  }

  #accept(
    request: UpgradeRequest,
    { subprotocol }: AdmissibleUpgrade,
    identity: Identity | undefined,
    refusal: unknown,
  ): void {
    if (!this.#admissions.decide(request.id, identity, refusal)) return
    this.#context.transport.accept(request.id, {
      ...(subprotocol === undefined ? undefined : { subprotocol }),
      ...(request.kind === 'sse' ? { headers: corsHeaders(request, this.#context) } : undefined),
    })
  }

  #refuse(request: UpgradeRequest, error: WebMQError, address: string): void {
    const { drainRetryAfterMs, services, transport } = this.#context
    const origin = request.header('origin')
    services.logger.debug({ code: error.code, path: request.path, remoteAddress: address }, 'upgrade refused')
    if (error.code === 'E_INSECURE') this.#reportOutsider(address)
    if (error.code === 'E_ORIGIN_FORBIDDEN') this.#refusedOrigins.report(origin)
    services.measurements.refusedUpgrades.add(error.code)
    services.observer?.upgradeRefused?.({ address, origin }, error.code)
    const retryAfterMs = drainRetryAfterMs()
    const headers: Record<string, string> = {}
    if (retryAfterMs !== undefined) headers['retry-after'] = `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}`
    const rejection =
      request.kind === 'sse'
        ? streamRejectionOf(error, { ...headers, ...corsHeaders(request, this.#context) })
        : rejectionOf(error, headers)
    transport.reject(request.id, rejection)
  }

  #beginStream(session: Session, stream: AskedEventStream): void {
    stream.begin(session).catch((error: unknown) => {
      if (session.isClosed) return
      const { code } = session.refuse(error, undefined)
      this.#context.refusals.add(session, 'listen', code, undefined)
      // The code of a hook may be in no table.
      const isTerminal = error instanceof HookRefusal && closeCodeOf(error.code) === undefined
      session.end(isTerminal ? 'E_CONNECTION_REFUSED' : code)
    })
  }

  /** The identity of a client without a token, before a hook may give it another. */
  #anonymous(): Identity {
    const { services, insecure } = this.#context
    return services.hooks?.has('connect') === true && !insecure ? UNIDENTIFIED : ANONYMOUS
  }

  #reportOutsider(remoteAddress: string): void {
    const { logger, now } = this.#context.services
    if (this.#outsiderPace.take(1, now()) === undefined) return
    logger.warn(
      { remoteAddress },
      'without tokens, only clients of this machine may connect, and none behind a proxy; set a key for tokens ' +
        '(jwt.secret, jwt.publicKey or jwt.jwksUrl), trust a proxy for development (--trusted-proxy loopback), or allow ' +
        'everyone with insecure (--insecure)',
    )
  }
}
