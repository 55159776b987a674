import {
  closeCodeOf,
  ERRORS,
  type ErrorCode,
  encodeServerMessage,
  MAX_MALFORMED_MESSAGES,
  type TextServerMessage,
  WebMQError,
} from 'webmq-client/protocol'
import type { Revocations } from '../cluster/index.js'
import type { Deadline, Deadlines } from '../deadlines.js'
import type { ConnectFacts, HookCalls } from '../hooks/index.js'
import { HookRefusal } from '../hooks/index.js'
import type { Actor, Door } from '../identity/actor.js'
import { type Claims, type Identity, mayEnter, mayListen, type TokenVerifier } from '../identity/index.js'
import { type PackedAddress, packAddress, unpackAddress } from '../identity/packed-address.js'
import type { Logger } from '../logger.js'
import type { Measurements, ResumeOutcome } from '../measuring/measurements.js'
import type { MetaRules } from '../patterns/meta-rules.js'
import type { OverflowRules } from '../patterns/overflow-rules.js'
import type { Broker } from '../ports/broker.js'
import { andThen, isPromise, type MaybePromise } from '../ports/maybe-promise.js'
import { formatPosition } from '../ports/position.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { ConnectionId, FrameData, Transport } from '../ports/transport.js'
import type { ConnectionPresence, Presence } from '../presence/index.js'
import type { Author } from '../publishing/author.js'
import type { Observer } from '../publishing/observer.js'
import type { Publisher } from '../publishing/publisher.js'
import type { RateGate, RateLimit } from '../publishing/rate-gate.js'
import { ConnectionGroups, type ConnectionGroupsContext, type QueueGroups, type Reply } from '../queue-groups/index.js'
import type { Drains } from '../replay/drains.js'
import type { ReplaySender } from '../replay/sender.js'
import type { Delivery } from '../routing/delivery.js'
import { Listens, type ListensContext } from '../routing/listens.js'
import type { ConnectionCounts } from './connection-counts.js'
import type { EffectiveLimits, SessionLimits } from './effective-limits.js'
import type { SessionContext } from './handlers/index.js'
import { createSessionId } from './id.js'
import type { UserListens } from './user-listens.js'
import type { WorkAccount } from './work/account.js'
import { matchingUnits } from './work/costs.js'
import type { Turns } from './work/turns.js'

/** `authenticating` until the session has an identity, then `active`; `closed` once the server or the client has ended it. */
export type SessionState = 'authenticating' | 'active' | 'closed'

/** What all sessions of a node share. */
export interface SessionServices extends ListensContext, ConnectionGroupsContext {
  readonly transport: Pick<Transport, 'send' | 'join' | 'leave' | 'setOverflow' | 'prepareAnswer' | 'close'>
  readonly broker: Pick<Broker, 'capabilities' | 'publish' | 'read' | 'position'>
  readonly replays: ReplaySender
  readonly delivery: Pick<Delivery, 'isTellingGap'>
  readonly overflowRules: OverflowRules
  readonly metaRules: MetaRules
  readonly presence: Presence
  readonly groups: QueueGroups
  readonly drains: Pick<Drains, 'await' | 'drained' | 'release'>
  readonly turns: Pick<Turns<Session>, 'accountOf' | 'release'>
  readonly verifier: TokenVerifier | undefined
  /** Absent without any hook. */
  readonly hooks?: HookCalls | undefined
  /** Connections per user. */
  readonly users: Pick<ConnectionCounts, 'enter' | 'leave'>
  readonly revocations: Pick<Revocations, 'covers'>
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  readonly limits: EffectiveLimits
  readonly publisher: Pick<Publisher, 'publish' | 'request'>
  /** Later messages of the session wait. @param decided Never rejects. */
  readonly hold: (session: Session, decided: Promise<void>) => void
  readonly userListens: Pick<UserListens, 'assertRoom' | 'add'>
  readonly measurements: Measurements
  /** Absent when nobody wants to know. */
  readonly observer: Observer | undefined
  /** Whether messages of this key are logged. */
  readonly isLogged: (key: string) => boolean
  readonly logger: Logger
  /** Of the sessions of these services; default `websocket`. */
  readonly door?: 'sse'
  /** Encodes messages of the server for them; default: for WebSockets. */
  readonly encode?: (message: TextServerMessage) => string
  /** Unix time in milliseconds. */
  readonly now: () => number
}

/** The client is warned this long before its token expires, or at 20 % of the remaining lifetime if that is later. */
const EXPIRY_WARNING_MS = 30_000
const EXPIRY_WARNING_SHARE = 0.2

const NO_GROUPS = { size: 0, searchCount: 0 }

/** Codes of a token that could not be looked at. */
const UNDECIDED_CODES: readonly ErrorCode[] = ['E_INTERNAL', 'E_RATE_LIMIT', 'E_HOOK_FAILED']

/** The protocol state of one connection. Rarely used parts are created on first use, which keeps idle connections small. */
export class Session implements SessionContext, Actor, Author {
  readonly id = createSessionId()
  readonly connection: ConnectionId
  /** Unix time in milliseconds at which the connection was opened. */
  readonly openedAtMs: number
  readonly #services: SessionServices
  readonly #address: PackedAddress
  #state: SessionState = 'authenticating'
  #identity: Identity | undefined
  #listens: Listens | undefined
  #ownPresence: ConnectionPresence | undefined
  #ownGroups: ConnectionGroups | undefined
  #deadline: Deadline | undefined
  #malformedCount = 0
  /** Of the upgrade request, for the hook `connect`, until it was asked. */
  #facts: ConnectFacts | undefined
  pendingBytes = 0
  requestCount = 0
  /** Messages of the client so far. */
  receivedCount = 0

  /** @param address The client's address, or an empty text when it is not known. */
  constructor(connection: ConnectionId, services: SessionServices, address: string) {
    this.connection = connection
    this.openedAtMs = services.now()
    this.#services = services
    this.#address = packAddress(address)
  }

  /** The client's IP address as text; empty when it is not known. Cost: the text is put together anew. */
  get address(): string {
    return unpackAddress(this.#address)
  }

  get state(): SessionState {
    return this.#state
  }

  get door(): Door {
    return this.#services.door ?? 'websocket'
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  get limits(): SessionLimits {
    const { limits } = this.#services
    return this.#identity?.limits === undefined ? limits.defaults : limits.of(this.#identity)
  }

  get broker(): SessionServices['broker'] {
    return this.#services.broker
  }

  get verifier(): TokenVerifier | undefined {
    return this.#services.verifier
  }

  /** Whether it has had an identity. */
  get wasActive(): boolean {
    return this.#identity !== undefined
  }

  /** Absent until the session is active. */
  get identity(): Identity | undefined {
    return this.#identity
  }

  get userId(): string | undefined {
    return this.#identity?.userId
  }

  /** Present while hooks want them. */
  get claims(): Claims | undefined {
    return this.#identity?.claims
  }

  /** Use it at once, do not keep it. */
  get meter(): WorkAccount<Session> {
    return this.#services.turns.accountOf(this)
  }

  get listens(): Listens {
    this.#listens ??= new Listens(this.connection, this.#services)
    return this.#listens
  }

  get presence(): Presence {
    return this.#services.presence
  }

  get ownPresence(): ConnectionPresence {
    this.#ownPresence ??= this.presence.of(this.connection)
    return this.#ownPresence
  }

  get groups(): QueueGroups {
    return this.#services.groups
  }

  get ownGroups(): ConnectionGroups {
    this.#ownGroups ??= new ConnectionGroups(this.connection, this.#services)
    return this.#ownGroups
  }

  get groupCounts(): Pick<ConnectionGroups, 'size' | 'searchCount'> {
    return this.#ownGroups ?? NO_GROUPS
  }

  replyTo(ticketId: string, reply: Reply): boolean {
    return this.#ownGroups !== undefined && this.groups.reply(this.#ownGroups, ticketId, reply)
  }

  get replays(): ReplaySender {
    return this.#services.replays
  }

  /** How busy the connection is, to compare it with others: its patterns, and the messages that it sends per minute. */
  get load(): number {
    const minutes = Math.max(1, (this.#services.now() - this.openedAtMs) / 60_000)
    return this.listenCount + this.receivedCount / minutes
  }

  get metaRules(): MetaRules {
    return this.#services.metaRules
  }

  get overflowRules(): OverflowRules {
    return this.#services.overflowRules
  }

  /** Number of patterns that the connection listens to, queue groups included. */
  get listenCount(): number {
    return (this.#listens?.size ?? 0) + (this.#ownGroups?.size ?? 0)
  }

  /** The patterns that the connection listens with. */
  patterns(): readonly string[] {
    return this.#listens?.patterns() ?? []
  }

  mayListen(pattern: string): boolean {
    const identity = this.#identity
    if (isReserved(pattern)) return false
    return identity !== undefined && mayListen(identity, pattern)
  }

  /** @throws {WebMQError} `E_FORBIDDEN` */
  assertMayListen(pattern: string): void {
    if (!this.mayListen(pattern)) throw new WebMQError('E_FORBIDDEN', { detail: `listen ${pattern}` })
  }

  /** @throws {WebMQError} The refusal of a hook, or `E_HOOK_FAILED`. */
  askListen(pattern: string, isReplay: boolean): MaybePromise<void> {
    return this.#services.hooks?.listen(this, 'listen', pattern, isReplay)
  }

  mayEnter(key: string): boolean {
    const identity = this.#identity
    if (isReserved(key)) return false
    return identity !== undefined && mayEnter(identity, key)
  }

  publishGateOf(limit: RateLimit): RateGate {
    return this.meter.publishGateOf(limit)
  }

  hold(decided: Promise<void>): void {
    this.#services.hold(this, decided)
  }

  matched(stepCount: number): void {
    if (stepCount > 0) this.meter.charge(matchingUnits(stepCount))
  }

  get publisher(): SessionServices['publisher'] {
    return this.#services.publisher
  }

  assertUserListens(): void {
    const { maxListensPerUser } = this.limits
    if (maxListensPerUser === undefined || this.userId === undefined) return
    this.#services.userListens.assertRoom(this.userId, maxListensPerUser)
  }

  isLogged(key: string): boolean {
    return this.#services.isLogged(key)
  }

  reply(message: TextServerMessage): void {
    const { encode = encodeServerMessage } = this.#services
    this.replyEncoded(encode(message))
  }

  replyToAll(request: string, answer: TextServerMessage, validMs: number): void {
    const { encode = encodeServerMessage, transport } = this.#services
    const text = encode(answer)
    transport.prepareAnswer?.(request, text, validMs)
    this.replyEncoded(text)
  }

  replyEncoded(data: FrameData): void {
    this.#services.transport.send(this.connection, data, false)
  }

  get livePosition(): string | undefined {
    const { broker, delivery } = this.#services
    if (delivery.isTellingGap) return undefined
    const position = broker.position()
    if (!isPromise(position)) return position && formatPosition(position)
    // A remote log may be ahead of what was delivered from it. The answer is not used, so its failure does not matter.
    position.catch(() => undefined)
    return undefined
  }

  /** Ends the session unless the client sends a token within `authTimeoutMs`. */
  awaitToken(): void {
    this.#setDeadline(this.#services.now() + this.limits.authTimeoutMs, () => {
      this.#services.measurements.missingTokenCount++
      this.#services.observer?.refused?.(this, 'connect', 'E_AUTH_TIMEOUT', undefined)
      this.end('E_AUTH_TIMEOUT')
    })
  }

  /** Keeps what the hook `connect` will see of the upgrade request. */
  remember(facts: ConnectFacts): void {
    this.#facts = facts
  }

  /**
   * Asks the hook `connect`, if there is one, then continues the session with the identity that it gives.
   * @throws {WebMQError} As {@link authenticate}, and those of the hook.
   */
  admit(identity: Identity): MaybePromise<void> {
    const { hooks } = this.#services
    if (hooks?.hasConnect !== true) return this.authenticate(identity)
    const facts = this.#facts
    this.#facts = undefined
    return andThen(hooks.connect(this, identity, facts), (given) => {
      if (!this.isClosed) this.authenticate(given)
    })
  }

  authenticate(identity: Identity): void {
    if (this.#identity !== undefined && this.#identity.userId !== identity.userId) {
      throw new WebMQError('E_FORBIDDEN', { detail: 'the token belongs to another user' })
    }
    if (this.#services.revocations.covers(identity)) throw new WebMQError('E_TOKEN_REVOKED')
    // Counted once; `release` ends it.
    const isFirst = this.#identity === undefined
    if (isFirst && identity.userId !== undefined) {
      const { limits, users } = this.#services
      users.enter(identity.userId, limits.of(identity).maxConnectionsPerUser)
    }
    this.#identity = identity
    this.#state = 'active'
    this.#clearDeadline()
    if (isFirst) this.#services.observer?.connected?.(this)
    const { expiresAtMs } = identity
    if (expiresAtMs === undefined) return
    const lifeMs = expiresAtMs - this.#services.now()
    const warningMs = Math.min(EXPIRY_WARNING_MS, lifeMs * EXPIRY_WARNING_SHARE)
    this.#setDeadline(expiresAtMs - warningMs, () => {
      this.reply({ verb: 'expiring', inMs: this.expiresInMs() ?? 0 })
      this.#setDeadline(expiresAtMs, () => this.end('E_TOKEN_EXPIRED'))
    })
  }

  expiresInMs(): number | undefined {
    const expiresAtMs = this.#identity?.expiresAtMs
    return expiresAtMs === undefined ? undefined : Math.max(0, Math.round(expiresAtMs - this.#services.now()))
  }

  revokeListens(): void {
    const mayListen = (pattern: string) => this.mayListen(pattern)
    const mayEnter = (key: string) => this.mayEnter(key)
    for (const pattern of this.#listens?.revoke(mayListen) ?? []) {
      this.unlistened(pattern)
      this.#tellRevoked(`listen ${pattern}`, { pattern })
    }
    for (const { kind, group, pattern } of this.#ownGroups?.revoke(mayListen) ?? []) {
      this.unlistened(pattern)
      const { code, message } = new WebMQError('E_FORBIDDEN', { detail: `listen ${pattern}, no longer granted` })
      this.reply({ verb: 'ended', group, pattern, ...(kind === 'respond' ? { respond: true } : {}), code, message })
    }
    for (const key of this.#ownPresence?.revoke(mayEnter, mayListen) ?? [])
      this.#tellRevoked(`presence ${key}`, { key })
  }

  #tellRevoked(what: string, names: { readonly pattern: string } | { readonly key: string }): void {
    const { code, message, retryable, docs } = new WebMQError('E_FORBIDDEN', { detail: `${what}, no longer granted` })
    this.reply({ verb: 'error', code, message, retryable, docs, ...names })
  }

  refuseToken(error: unknown, id: string | undefined): void {
    if (this.isClosed) return
    const isNew = this.#state === 'authenticating'
    const isTerminal = error instanceof HookRefusal && closeCodeOf(error.code) === undefined
    // Clients act on the answer to `auth` before the close code arrives, and connect again unless they know the code.
    const { code } = this.refuse(error, isTerminal && isNew ? undefined : id)
    this.#services.observer?.refused?.(this, this.wasActive ? 'auth' : 'connect', code, undefined)
    if (isTerminal) this.end('E_CONNECTION_REFUSED')
    // A token that could not be looked at says nothing about the one that the session already has.
    else if (isNew || !UNDECIDED_CODES.includes(code)) this.end(code)
  }

  /** Answers a refused message. Any error but a WebMQError is a bug: the log gets all of it, the client only `E_INTERNAL`. */
  refuse(error: unknown, id: string | undefined): WebMQError {
    let known = error instanceof WebMQError ? error : new WebMQError('E_INTERNAL')
    if (known.code === 'E_INTERNAL') {
      this.#services.logger.error({ err: error, session: this.id }, 'a message could not be handled')
      known = new WebMQError('E_INTERNAL')
    } else if (known.code === 'E_BROKER_REFUSED') {
      // This code is for the operator, who has to grant the node more rights. Clients do not know it.
      this.#services.logger.error({ err: error, session: this.id }, 'the broker refused a request of a client')
      known = new WebMQError('E_UNSUPPORTED', { detail: 'the broker refused it' })
    } else if (known.code === 'E_BROKER_UNAVAILABLE' && known.cause !== undefined) {
      // Messages of the broker's library may name hosts, so clients do not see them.
      known = new WebMQError('E_BROKER_UNAVAILABLE')
    }
    const { code, message, retryable, docs } = known
    const retryAfterMs = 'retryAfterMs' in known ? Number(known.retryAfterMs) : undefined
    this.reply({
      verb: 'error',
      ...(id === undefined ? undefined : { id }),
      code,
      message,
      retryable,
      docs,
      ...(retryAfterMs === undefined ? undefined : { retryAfterMs }),
    })
    return known
  }

  resumed(outcome: ResumeOutcome): void {
    this.#services.measurements.resumes.add(outcome)
  }

  listened(pattern: string): void {
    this.#services.observer?.listened?.(this, pattern)
  }

  unlistened(pattern: string): void {
    this.#services.observer?.unlistened?.(this, pattern)
  }

  /** Counts a malformed message; the sixteenth ends the session [P-10.3]. */
  countMalformed(): void {
    if (++this.#malformedCount >= MAX_MALFORMED_MESSAGES) this.end('E_PROTOCOL_VIOLATION')
  }

  /** Sends `bye` and closes the connection with the error's close code, after everything that is queued. */
  end(code: ErrorCode, retryAfterMs?: number): void {
    if (this.isClosed) return
    const closeCode = closeCodeOf(code) ?? closeCodeOf('E_INTERNAL') ?? 1011
    this.reply({ verb: 'bye', code: closeCode, ...(retryAfterMs === undefined ? undefined : { retryAfterMs }) })
    this.#services.transport.close(this.connection, closeCode, ERRORS[code].message)
    this.#state = 'closed'
    this.#clearDeadline()
  }

  /**
   * The connection has closed: frees everything that was held for it.
   * @param isWanted The client closed it for good, and will not come back to this session.
   */
  release(isWanted: boolean): void {
    this.#state = 'closed'
    this.#clearDeadline()
    if (this.userId !== undefined) this.#services.users.leave(this.userId)
    this.#services.userListens.add(this.userId, -this.listenCount)
    this.#services.turns.release(this)
    this.#services.drains.release(this.connection)
    this.#services.replays.release(this.connection)
    this.#ownGroups?.close()
    this.#listens?.close()
    this.#ownPresence?.close(isWanted)
  }

  #setDeadline(atMs: number, fire: () => void): void {
    this.#clearDeadline()
    this.#deadline = this.#services.deadlines.set(atMs, fire)
  }

  #clearDeadline(): void {
    if (this.#deadline !== undefined) this.#services.deadlines.clear(this.#deadline)
    this.#deadline = undefined
  }
}
