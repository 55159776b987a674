import {
  closeCodeOf,
  ERRORS,
  type ErrorCode,
  encodeMessageFrame,
  encodeServerMessage,
  MAX_MALFORMED_MESSAGES,
  type TextServerMessage,
  WebMQError,
} from 'webmq-client/protocol'
import type { Deadline, Deadlines } from '../deadlines.js'
import { ANONYMOUS, type Identity, mayListen, mayPublish, type TokenVerifier } from '../identity/index.js'
import type { Logger } from '../logger.js'
import type { Broker, InboundMessage, Position } from '../ports/broker.js'
import { isPromise } from '../ports/maybe-promise.js'
import { formatPosition } from '../ports/position.js'
import { isReserved } from '../ports/reserved-keys.js'
import type { ConnectionId, Transport } from '../ports/transport.js'
import type { Attendance, Presence } from '../presence/index.js'
import { ReplayAllowance } from '../replay/allowance.js'
import type { ReplayPacer } from '../replay/pacer.js'
import type { WirePositions } from '../replay/wire-positions.js'
import type { Delivery } from '../routing/delivery.js'
import { Listens, type ListensContext } from '../routing/listens.js'
import type { HandlerContext, HandlerLimits } from './handlers/handler.js'
import { createSessionId } from './id.js'

/** `authenticating` until there is an identity, `active` from then on, `closed` once the server or the peer has ended it. */
export type SessionState = 'authenticating' | 'active' | 'closed'

/** What all sessions of a node share. */
export interface SessionServices extends ListensContext {
  readonly transport: Pick<Transport, 'send' | 'join' | 'leave' | 'close'>
  readonly broker: Pick<Broker, 'capabilities' | 'publish' | 'read' | 'position'>
  readonly positions: WirePositions
  readonly replays: ReplayPacer
  readonly delivery: Pick<Delivery, 'isTellingGap'>
  readonly presence: Presence
  readonly verifier: TokenVerifier | undefined
  readonly deadlines: Pick<Deadlines, 'set' | 'clear'>
  readonly limits: HandlerLimits & {
    readonly authTimeoutMs: number
    /** Bytes that a connection may be replayed at once, and again per second. */
    readonly maxReplayBytes: number
  }
  readonly log: Logger
  /** Unix time in milliseconds. */
  readonly now: () => number
}

/** A client is told that its token runs out so long before, or when 20 % of its life are left, whichever is shorter. */
const EXPIRY_WARNING_MS = 30_000
const EXPIRY_WARNING_SHARE = 0.2

/** The protocol state of one connection. What it costs while idle is kept small: what is rarely needed is made late. */
export class Session implements HandlerContext {
  readonly id = createSessionId()
  readonly connection: ConnectionId
  readonly #services: SessionServices
  #state: SessionState = 'authenticating'
  #identity: Identity | undefined
  #listens: Listens | undefined
  #attendance: Attendance | undefined
  #deadline: Deadline | undefined
  #replayAllowance: ReplayAllowance | undefined
  #malformedCount = 0
  pendingBytes = 0

  constructor(connection: ConnectionId, services: SessionServices) {
    this.connection = connection
    this.#services = services
  }

  get state(): SessionState {
    return this.#state
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  get limits(): HandlerLimits {
    return this.#services.limits
  }

  get broker(): SessionServices['broker'] {
    return this.#services.broker
  }

  get verifier(): TokenVerifier | undefined {
    return this.#services.verifier
  }

  get userId(): string | undefined {
    return this.#identity?.userId
  }

  get listens(): Listens {
    this.#listens ??= new Listens(this.connection, this.#services)
    return this.#listens
  }

  get presence(): Presence {
    return this.#services.presence
  }

  get attendance(): Attendance {
    this.#attendance ??= this.presence.attend(this.connection)
    return this.#attendance
  }

  /** Patterns that the connection listens with. */
  get listenCount(): number {
    return this.#listens?.size ?? 0
  }

  mayListen(pattern: string): boolean {
    const identity = this.#identity
    if (isReserved(pattern)) return false
    return identity === ANONYMOUS || (identity !== undefined && mayListen(identity, pattern))
  }

  mayPublish(key: string): boolean {
    const identity = this.#identity
    if (isReserved(key)) return false
    return identity === ANONYMOUS || (identity !== undefined && mayPublish(identity, key))
  }

  reply(message: TextServerMessage): void {
    this.replyText(encodeServerMessage(message))
  }

  replyText(text: string): void {
    this.#services.transport.send(this.connection, text, false)
  }

  givePosition(position: Position | undefined): { readonly position?: string } {
    const { positions, broker } = this.#services
    if (position !== undefined) return { position: positions.give(position) }
    if (broker.capabilities.history) positions.giveNone()
    return {}
  }

  get livePosition(): string | undefined {
    const { broker, delivery } = this.#services
    if (delivery.isTellingGap) return undefined
    const position = broker.position()
    if (!isPromise(position)) return position && formatPosition(position)
    // A log that has to be asked may be ahead of what was delivered from it; whether it can be asked does not matter here.
    position.catch(() => undefined)
    return undefined
  }

  replay({ key, position, payload, isBinary }: InboundMessage): void {
    const { positions, transport, replays } = this.#services
    replays.sent()
    transport.send(this.connection, encodeMessageFrame(key, positions.of(position), true, payload), isBinary)
  }

  replayTurn(since: string | undefined): void | Promise<void> {
    if (since !== undefined) this.#replayAllowance?.onAsked(since, this.#services.now())
    const waitMs = this.#replayAllowance?.waitMs(this.#services.now()) ?? 0
    if (waitMs === 0) return this.#services.replays.turn()
    return new Promise<void>((resolve) => {
      this.#services.deadlines.set(this.#services.now() + waitMs, resolve)
    }).then(() => this.#services.replays.turn())
  }

  takeReplayBytes(byteCount: number, isForced: boolean): boolean {
    this.#replayAllowance ??= new ReplayAllowance(this.#services.limits.maxReplayBytes)
    return this.#replayAllowance.take(byteCount, this.#services.now(), isForced)
  }

  endReplayPage(next: string | undefined): void {
    this.#replayAllowance?.endPage(next, this.#services.now())
  }

  /** Gives the client until `authTimeoutMs` to send a token. */
  awaitToken(): void {
    const { limits, now } = this.#services
    this.#setDeadline(now() + limits.authTimeoutMs, () => this.end('E_AUTH_TIMEOUT'))
  }

  authenticate(identity: Identity): void {
    if (this.#identity !== undefined && this.#identity.userId !== identity.userId) {
      throw new WebMQError('E_FORBIDDEN', { detail: 'the token is of another user' })
    }
    this.#identity = identity
    this.#state = 'active'
    this.#clearDeadline()
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
    const isGranted = (pattern: string) => this.mayListen(pattern)
    for (const pattern of this.#listens?.revoke(isGranted) ?? []) this.#tellRevoked(`listen ${pattern}`, { pattern })
    for (const key of this.#attendance?.revoke(isGranted) ?? []) this.#tellRevoked(`presence ${key}`, { key })
  }

  #tellRevoked(what: string, names: { readonly pattern: string } | { readonly key: string }): void {
    const { code, message, retryable, docs } = new WebMQError('E_FORBIDDEN', { detail: `${what}, no longer granted` })
    this.reply({ verb: 'error', code, message, retryable, docs, ...names })
  }

  refuseToken(error: unknown, id: string | undefined): void {
    if (this.isClosed) return
    const { code } = this.refuse(error, id)
    // Keys that cannot be fetched now say nothing about the token that the session already has.
    if (code !== 'E_INTERNAL' || this.#state === 'authenticating') this.end(code)
  }

  /** Answers a message that was not obeyed. An error that is no WebMQError is a bug: logged in full, told in one word. */
  refuse(error: unknown, id: string | undefined): WebMQError {
    let known = error instanceof WebMQError ? error : new WebMQError('E_INTERNAL')
    if (known.code === 'E_INTERNAL') {
      this.#services.log.error({ err: error, session: this.id }, 'a message could not be handled')
      known = new WebMQError('E_INTERNAL')
    } else if (known.code === 'E_BROKER_REFUSED') {
      // Clients do not know the code: it is of the operator, who has to give the node more rights.
      this.#services.log.error({ err: error, session: this.id }, 'the broker refuses what a client asks for')
      known = new WebMQError('E_UNSUPPORTED', { detail: 'the broker refuses it' })
    } else if (known.code === 'E_BROKER_UNAVAILABLE' && known.cause !== undefined) {
      // What the broker's library says may name hosts, and is for those who run them.
      known = new WebMQError('E_BROKER_UNAVAILABLE')
    }
    const { code, message, retryable, docs } = known
    this.reply({ verb: 'error', ...(id === undefined ? undefined : { id }), code, message, retryable, docs })
    return known
  }

  /** Counts a malformed message; with the sixteenth the session ends [P-10.3]. */
  countMalformed(): void {
    if (++this.#malformedCount >= MAX_MALFORMED_MESSAGES) this.end('E_PROTOCOL_VIOLATION')
  }

  /** Says goodbye and closes the connection with the error's close code; what is queued is sent first. */
  end(code: ErrorCode, retryAfterMs?: number): void {
    if (this.isClosed) return
    const closeCode = closeCodeOf(code) ?? closeCodeOf('E_INTERNAL') ?? 1011
    this.reply({ verb: 'bye', code: closeCode, ...(retryAfterMs === undefined ? undefined : { retryAfterMs }) })
    this.#services.transport.close(this.connection, closeCode, ERRORS[code].message)
    this.#state = 'closed'
    this.#clearDeadline()
  }

  /**
   * The connection is gone: everything that was held for it is let go.
   * @param isWanted The client has closed it, to end what it was for.
   */
  release(isWanted: boolean): void {
    this.#state = 'closed'
    this.#clearDeadline()
    this.#listens?.close()
    this.#attendance?.close(isWanted)
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
