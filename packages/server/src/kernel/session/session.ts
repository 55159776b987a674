import {
  closeCodeOf,
  ERRORS,
  type ErrorCode,
  encodeServerMessage,
  MAX_MALFORMED_MESSAGES,
  type TextServerMessage,
  WebMQError,
} from 'webmq-client/protocol'
import type { Deadline, Deadlines } from '../base/deadlines.js'
import { andThen, type MaybePromise } from '../base/maybe-promise.js'
import { type ConnectFacts, clientNameOf, type Door, isProxied } from '../identity/actor.js'
import { type PackedAddress, packAddress, unpackAddress } from '../identity/client-address.js'
import type { Claims, Identity } from '../identity/index.js'
import type { ConnectionId, FrameData } from '../ports/transport.js'
import { type Author, type Behind, countPending } from '../publishing/author.js'
import type { RateGate, RateLimit } from '../publishing/rate-gate.js'
import { Listens } from '../routing/listens.js'
import type { SessionLimits } from './effective-limits.js'
import { createSessionId } from './id.js'
import type { ListenCounts } from './listen-room.js'
import type { SessionServices } from './services.js'
import { encodeRefusal, shownError } from './shown-error.js'
import { matchingUnits } from './work/costs.js'
import type { SessionQueue } from './work/session-queue.js'

/** `authenticating` until the session has an identity, then `active`; `closed` once the server or the client has ended it. */
export type SessionState = 'authenticating' | 'active' | 'closed'

/** The client is warned this long before its token expires, or at 20 % of the remaining lifetime if that is later. */
const EXPIRY_WARNING_MS = 30_000
const EXPIRY_WARNING_SHARE = 0.2

const NO_GROUPS: ListenCounts = { size: 0, searchCount: 0 }

/** The protocol state of one connection. Rarely used parts are created on first use, which keeps idle connections small. */
export class Session implements Author {
  readonly id = createSessionId()
  readonly connection: ConnectionId
  /** Unix time in milliseconds at which the connection was opened. */
  readonly openedAtMs: number
  readonly services: SessionServices
  readonly #address: PackedAddress
  #state: SessionState = 'authenticating'
  #identity: Identity | undefined
  #listens: Listens | undefined
  #deadline: Deadline | undefined
  #malformedCount = 0
  /** Of the upgrade request, for the hook `connect`, until it was asked. */
  #facts: ConnectFacts | undefined
  #pendingBytes = 0
  /** Under which name its publishes count that wait; empty: under none. `undefined`: none has waited. */
  #client: string | undefined
  requestCount = 0
  /** Of the queue groups that the connection is a member of. */
  groupCounts = NO_GROUPS
  /** Messages of the client so far. */
  receivedCount = 0

  /** @param address The client's address, or an empty text when it is not known. */
  constructor(connection: ConnectionId, services: SessionServices, address: string) {
    this.connection = connection
    this.openedAtMs = services.now()
    this.services = services
    this.#address = packAddress(address)
  }

  /** The client's IP address as text; empty when it is not known. Cost: the text is put together anew. */
  get address(): string {
    return unpackAddress(this.#address)
  }

  get pendingBytes(): number {
    return this.#pendingBytes
  }

  set pendingBytes(byteCount: number) {
    const client = this.#pendingClient
    if (client !== '') countPending(this.services.pendingByClient, client, byteCount - this.#pendingBytes)
    this.#pendingBytes = byteCount
  }

  get clientPendingBytes(): number {
    const { pendingByClient } = this.services
    return pendingByClient.size === 0 ? 0 : (pendingByClient.get(this.#pendingClient) ?? 0)
  }

  get #pendingClient(): string {
    this.#client ??= isProxied(this) ? '' : clientNameOf(this)
    return this.#client
  }

  get state(): SessionState {
    return this.#state
  }

  get door(): Door {
    return this.services.door ?? 'websocket'
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  get limits(): SessionLimits {
    const { limits } = this.services
    return this.#identity?.limits === undefined ? limits.defaults : limits.of(this.#identity)
  }

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
  get meter(): SessionQueue<Session> {
    return this.services.turns.queueOf(this)
  }

  get listens(): Listens {
    this.#listens ??= new Listens(this.connection, this.services)
    return this.#listens
  }

  /** How busy the connection is, to compare it with others: its patterns, and the messages that it sends per minute. */
  get load(): number {
    const minutes = Math.max(1, (this.services.now() - this.openedAtMs) / 60_000)
    return this.listenCount + this.receivedCount / minutes
  }

  /** Number of patterns that the connection listens to, queue groups included. */
  get listenCount(): number {
    return (this.#listens?.size ?? 0) + this.groupCounts.size
  }

  patterns(): readonly string[] {
    return this.#listens?.patterns() ?? []
  }

  publishGateOf(limit: RateLimit): RateGate {
    return this.meter.publishGateOf(limit)
  }

  /** When the message at hand arrived, if it has waited behind others. As `performance.now()`. */
  get arrivedMs(): number | undefined {
    return this.meter.arrivedMs
  }

  hold(decided: Promise<void>, behind?: Behind): void {
    this.services.hold(this, decided, behind)
  }

  charge(units: number): void {
    this.meter.charge(units)
  }

  matched(stepCount: number): void {
    if (stepCount > 0) this.charge(matchingUnits(stepCount))
  }

  reply(message: TextServerMessage): void {
    const { encode = encodeServerMessage } = this.services
    this.replyEncoded(encode(message))
  }

  replyEncoded(data: FrameData): void {
    this.services.transport.send(this.connection, data, false)
  }

  /** Ends the session unless the client sends a token within `authTimeoutMs`. */
  awaitToken(): void {
    const { deadlines } = this.services
    this.#setDeadline(deadlines, deadlines.now() + this.limits.authTimeoutMs, () => {
      this.services.measurements.missingTokenCount++
      this.services.observer?.refused?.(this, 'connect', 'E_AUTH_TIMEOUT', undefined)
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
    const { hooks } = this.services
    if (hooks?.has('connect') !== true) return this.authenticate(identity)
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
    if (this.services.revocations.covers(identity)) throw new WebMQError('E_TOKEN_REVOKED')
    // Counted once; `release` ends it.
    const isFirst = this.#identity === undefined
    if (isFirst && identity.userId !== undefined) {
      const { limits, users } = this.services
      users.enter(identity.userId, limits.of(identity).maxConnectionsPerUser)
    }
    this.#identity = identity
    this.#state = 'active'
    this.#clearDeadline()
    if (isFirst) this.services.observer?.connected?.(this)
    const { expiresAtMs } = identity
    if (expiresAtMs === undefined) return
    const { expiries, now } = this.services
    const warningMs = Math.min(EXPIRY_WARNING_MS, (expiresAtMs - now()) * EXPIRY_WARNING_SHARE)
    this.#setDeadline(expiries, expiresAtMs - warningMs, () => {
      this.reply({ verb: 'expiring', inMs: this.expiresInMs() ?? 0 })
      this.#setDeadline(expiries, expiresAtMs, () => this.end('E_TOKEN_EXPIRED'))
    })
  }

  expiresInMs(): number | undefined {
    const expiresAtMs = this.#identity?.expiresAtMs
    return expiresAtMs === undefined ? undefined : Math.max(0, Math.round(expiresAtMs - this.services.now()))
  }

  /** Answers a refused message, and returns the error as the client sees it. */
  refuse(error: unknown, id: string | undefined): WebMQError {
    const known = shownError(error, this.id, this.services.logger)
    this.replyEncoded(encodeRefusal(known, id, this.services.encode))
    return known
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
    this.services.transport.close(this.connection, closeCode, ERRORS[code].message)
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
    if (this.userId !== undefined) this.services.users.leave(this.userId)
    this.services.userListens.add(this.userId, -this.listenCount)
    this.services.turns.release(this)
    this.services.drains.release(this.connection)
    this.services.replays.release(this.connection)
    this.#listens?.close()
    for (const feature of this.services.features) feature.closed?.(this, isWanted)
  }

  /** Of a token that is awaited, or of one that expires. */
  #setDeadline(deadlines: Pick<Deadlines, 'set'>, atMs: number, fire: () => void): void {
    this.#clearDeadline()
    this.#deadline = deadlines.set(atMs, fire)
  }

  #clearDeadline(): void {
    if (this.#deadline === undefined) return
    this.services.deadlines.clear(this.#deadline)
    this.services.expiries.clear(this.#deadline)
    this.#deadline = undefined
  }
}
