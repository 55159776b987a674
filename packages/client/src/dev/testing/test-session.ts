import { decodeClientMessage } from '../../protocol/decode-client.js'
import { encodeMessageFrame } from '../../protocol/encode-message.js'
import { encodeServerMessage, type TextServerMessage } from '../../protocol/encode-server.js'
import { ERRORS, type ErrorCode, WebMQError } from '../../protocol/errors.js'
import { matches } from '../../protocol/matching.js'
import type { ClientMessage, ClientVerb, WirePayload } from '../../protocol/messages.js'
import { encodeMeta } from '../../protocol/meta.js'
import type { TestGroups, TestMember } from './test-groups.js'
import type { Replayed, SentMessage, TestLog } from './test-log.js'
import type { TestPresence, TestWatcher } from './test-presence.js'
import type { StreamMessage, TestStreams } from './test-streams.js'
import type { ServerEnd, ServerSide } from './test-websocket.js'

type From<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/** Default number of messages for a read of the log [P-6.7]. */
const DEFAULT_LAST = 100

/** State that the sessions of a test server share. */
export interface TestSessionContext {
  readonly log: TestLog
  /** Messages per page of a replay. */
  readonly replayPageMessages: number
  readonly maxListens: number
  /** Returns the token's user; `undefined`: the token is not valid. Absent: no token is required. */
  readonly verifyToken?: ((token: string) => { readonly userId?: string } | undefined) | undefined
  /** Decides whether a message is handled. */
  intercept(message: ClientMessage): 'handle' | 'handle-unanswered' | 'ignore' | ErrorCode
  publish(
    message: From<'publish'>,
    from: TestSession,
  ): { readonly position?: string | undefined; readonly duplicate: boolean }
  /** Takes a message of a stream. */
  stream(message: StreamMessage): {
    readonly position?: string | undefined
    readonly duplicate: boolean
    readonly refusal?: ErrorCode
  }
  readonly streams: TestStreams
  isRevoked(pattern: string): boolean
  /** Whether the last messages of these keys are kept. */
  isRetained(pattern: string): boolean
  readonly presence: TestPresence
  readonly groups: TestGroups
  onClosed(session: TestSession): void
}

/** One connection of the test server. */
export class TestSession implements ServerSide, TestWatcher, TestMember {
  readonly #context: TestSessionContext
  readonly #socket: ServerEnd
  readonly #patterns = new Set<string>()
  #isAuthenticated: boolean
  /** The user of its token. */
  userId: string | undefined
  /** One of its listens has asked for meta [P-15.3]. */
  #hasMeta = false
  #isMute = false

  readonly #handlers: { readonly [V in ClientVerb]: (message: From<V>) => void } = {
    ping: () => this.send({ verb: 'pong', position: this.#context.log.position() }),
    auth: (message) => this.#authenticate(message),
    listen: (message) => (message.group === undefined ? this.#listen(message) : this.#join(message, message.group)),
    unlisten: (message) => {
      if (this.#left(message)) this.send({ verb: 'ok', id: message.id })
      else this.#refuse(message.id, 'E_NOT_LISTENING')
    },
    publish: (message) => {
      const { id } = message
      const { position, duplicate } = this.#context.publish(message, this)
      if (id !== undefined) this.send({ verb: 'ok', id, duplicate, position })
    },
    history: (message) => this.#history(message),
    presence: (message) => this.#presence(message),
    request: (message) => {
      const { id } = message
      const refusal = this.#context.groups.request(this, message, () => this.send({ verb: 'ok', id }))
      if (refusal) this.#refuse(id, refusal)
    },
    reply: (message) => {
      if (!this.#context.groups.reply(this, message)) this.#refuse(message.id, 'E_TIMEOUT')
    },
    stream: (message) => this.#stream(message),
    read: (message) => this.#read(message),
  }

  constructor(context: TestSessionContext, socket: ServerEnd) {
    this.#context = context
    this.#socket = socket
    this.#isAuthenticated = !context.verifyToken
  }

  /** Patterns of this connection. */
  get patterns(): ReadonlySet<string> {
    return this.#patterns
  }

  send(message: TextServerMessage): void {
    if (this.#isMute && (message.verb === 'ok' || message.verb === 'error')) return
    this.#socket.send(encodeServerMessage(message))
  }

  sendFrame(frame: string | Uint8Array): void {
    this.#socket.send(frame)
  }

  close(code: number, reason?: string): void {
    this.#socket.close(code, reason)
  }

  onReceive(data: Uint8Array, isBinary: boolean): void {
    try {
      const message = decodeClientMessage(data, isBinary)
      const id = 'id' in message ? message.id : undefined
      const decision = this.#context.intercept(message)
      if (decision === 'ignore') return
      this.#isMute = decision === 'handle-unanswered'
      if (decision !== 'handle' && decision !== 'handle-unanswered') this.#refuse(id, decision)
      else if (!this.#isAuthenticated && message.verb !== 'auth' && message.verb !== 'ping')
        this.#refuse(id, 'E_UNAUTHENTICATED')
      else this.#handle(message, isBinary)
    } catch (error) {
      if (!(error instanceof WebMQError)) throw error
      this.#refuse(error.requestId, error.code, error.message)
    }
  }

  onClosed(code: number): void {
    this.#context.onClosed(this)
    this.#context.presence.closed(this, code === 1000)
    this.#context.groups.closed(this)
  }

  /** Ends a listen, memberships or presence, from the server's side. */
  revoke(pattern: string): void {
    const detail = `${ERRORS.E_FORBIDDEN.message}: listen ${pattern}, no longer granted`
    if (this.#patterns.delete(pattern)) this.#refuse(undefined, 'E_FORBIDDEN', detail, { pattern })
    for (const { group, isResponder } of this.#context.groups.revoke(pattern, this)) {
      const respond = isResponder && { respond: true as const }
      this.send({ verb: 'ended', group, pattern, ...respond, code: 'E_FORBIDDEN', message: detail })
    }
    if (this.#context.presence.end(pattern, this)) this.#refuse(undefined, 'E_FORBIDDEN', detail, { key: pattern })
  }

  /** Sends a change at a watched key. */
  tell(key: string, change: Parameters<TestWatcher['tell']>[1]): void {
    this.send({ verb: 'presence', key, ...change })
  }

  /** Sends a message once if any pattern of this connection matches. */
  deliver(message: SentMessage): void {
    if ([...this.#patterns].some((pattern) => matches(pattern, message.key))) this.#send(message, false, this.#hasMeta)
  }

  #handle(message: ClientMessage, isBinary: boolean): void {
    const wire = 'payload' in message ? { ...message, payload: payloadOf(message, isBinary) } : message
    const handle = this.#handlers[wire.verb] as (message: ClientMessage) => void
    handle(wire)
  }

  #stream(message: From<'stream'>): void {
    const { id, key } = message
    const { isRevoked, stream } = this.#context
    const { refusal, ...answer } = isRevoked(key) ? { refusal: 'E_FORBIDDEN' as const } : stream(message)
    if (refusal) this.#refuse(id, refusal)
    else this.send({ verb: 'ok', id, ...answer })
  }

  #read({ id, key }: From<'read'>): void {
    const { streams, log, isRevoked } = this.#context
    const position = log.position()
    if (isRevoked(key) || position === undefined) {
      this.#refuse(id, position ? 'E_FORBIDDEN' : 'E_UNSUPPORTED')
      return
    }
    const { summary, pieces, place } = streams.read(key)
    this.send({ verb: 'ok', id, position, replayed: pieces.length || undefined, result: summary })
    for (const payload of pieces) this.#send({ key, payload, meta: { stream: place } }, true, false)
  }

  #join({ id, pattern, since, last, rewindMs, overflow, respond }: From<'listen'>, group: string): void {
    const { groups, maxListens } = this.#context
    const isRanged = (since ?? last ?? rewindMs ?? overflow) !== undefined
    const refusal = isRanged ? 'E_UNSUPPORTED' : this.#refusalOf(pattern, this.#listenCount >= maxListens)
    if (refusal) {
      this.#refuse(id, refusal)
      return
    }
    groups.join({ group, pattern, isResponder: respond === true }, this)
    this.send({ verb: 'ok', id })
  }

  #refusalOf(pattern: string, isFull: boolean): ErrorCode | undefined {
    if (this.#context.isRevoked(pattern)) return 'E_FORBIDDEN'
    return isFull ? 'E_LISTEN_LIMIT' : undefined
  }

  #left({ pattern, group, respond }: From<'unlisten'>): boolean {
    if (group === undefined) return this.#patterns.delete(pattern)
    return this.#context.groups.leave({ group, pattern, isResponder: respond === true }, this)
  }

  /** Memberships count as listens [P-16.2]. */
  get #listenCount(): number {
    return this.#patterns.size + this.#context.groups.countOf(this)
  }

  #presence(message: From<'presence'>): void {
    const { id, key, op } = message
    const { presence, isRevoked } = this.#context
    if (isRevoked(key)) {
      this.#refuse(id, 'E_FORBIDDEN')
      return
    }
    if (op === 'enter') {
      const { member, data } = message
      const userId = this.userId
      const memberId = `of-${userId ?? 'anyone'}-${member}`
      const rest = { ...(userId !== undefined && { userId }), ...(data !== undefined && { data: JSON.parse(data) }) }
      presence.enter(key, this, { id: memberId, ...rest })
      this.send({ verb: 'ok', id, result: { id: memberId } })
      return
    }
    if (op === 'leave') presence.leaveOf(key, this)
    else if (op === 'unwatch') presence.unwatch(key, this)
    else if (op === 'watch') presence.watch(key, this)
    const isAsking = op === 'get' || op === 'watch'
    this.send({ verb: 'ok', id, ...(isAsking && { result: { members: presence.members(key) } }) })
  }

  #authenticate({ id, token }: From<'auth'>): void {
    const { verifyToken } = this.#context
    const identity = verifyToken ? verifyToken(token) : {}
    if (identity) {
      this.#isAuthenticated = true
      this.userId = identity.userId
      this.send({ verb: 'ok', id, result: identity })
    } else {
      const code = ERRORS.E_TOKEN_INVALID.closeCode
      this.#refuse(id, 'E_TOKEN_INVALID')
      this.send({ verb: 'bye', code })
      this.close(code)
    }
  }

  #listen({ id, pattern, since, last, rewindMs, state, meta }: From<'listen'>): void {
    const { log, maxListens, replayPageMessages: limit, isRetained } = this.#context
    const isFull = !this.#patterns.has(pattern) && this.#listenCount >= maxListens
    const refusal = (state && !isRetained(pattern) && 'E_UNSUPPORTED') || this.#refusalOf(pattern, isFull)
    if (refusal) {
      this.#refuse(id, refusal)
      return
    }
    const isAsked = (since ?? last ?? rewindMs) !== undefined
    const replayed = state
      ? log.state({ since, limit }, pattern)
      : isAsked
        ? log.read({ since, last, rewindMs, limit }, pattern)
        : { messages: [], more: false, position: log.position() }
    // A listen is not live between two pages [P-6.9].
    if (!replayed.more) this.#patterns.add(pattern)
    if (meta) this.#hasMeta = true
    const gap = since === undefined && replayed.gap === 'no-history' ? undefined : replayed.gap
    const recovered = (since !== undefined && replayed.gap === undefined) || undefined
    this.#replay({ id, recovered, gap, state }, replayed, meta)
  }

  #history({ id, key, since, before, rewindMs, last, limit, reverse, meta }: From<'history'>): void {
    const { log, replayPageMessages } = this.#context
    if (log.position() === undefined) {
      this.#refuse(id, 'E_UNSUPPORTED')
      return
    }
    const isForward =
      !reverse &&
      before === undefined &&
      (limit !== undefined || (last === undefined && (since ?? rewindMs) !== undefined))
    const share = isForward
      ? { limit: Math.min(limit ?? Number.POSITIVE_INFINITY, replayPageMessages) }
      : { last: Math.min(last ?? limit ?? DEFAULT_LAST, replayPageMessages) }
    const { isCut, ...replayed } = log.read({ since, before, rewindMs, ...share }, key)
    const isTold = isCut && (last ?? limit) !== undefined && (since ?? rewindMs) === undefined
    const messages = reverse ? [...replayed.messages].reverse() : replayed.messages
    this.#replay({ id, gap: isTold ? 'history-expired' : replayed.gap }, { ...replayed, messages }, meta)
  }

  #replay(
    ok: Pick<Extract<TextServerMessage, { verb: 'ok' }>, 'id' | 'recovered' | 'gap' | 'state'>,
    { messages, position, more }: Replayed,
    hasMeta: boolean | undefined,
  ): void {
    this.send({ verb: 'ok', ...ok, position, replayed: messages.length || undefined, more: more || undefined })
    for (const message of messages) this.#send(message, true, hasMeta)
  }

  #send({ key, payload, offset, meta: stamp }: SentMessage, replayed: boolean, hasMeta: boolean | undefined): void {
    const { log } = this.#context
    // Its place in a stream comes unasked.
    const meta = hasMeta ? stamp : stamp?.stream === undefined ? undefined : { stream: stamp.stream }
    const text = offset === undefined ? undefined : log.position(offset)
    if (typeof payload === 'string') {
      this.send({ verb: 'message', key, replayed, meta, payload, position: text })
      return
    }
    const position = offset === undefined || text === undefined ? undefined : log.place(offset)
    this.#socket.send(encodeMessageFrame(key, position, replayed, payload, meta && encodeMeta(meta)))
  }

  #refuse(
    id: string | undefined,
    code: ErrorCode,
    message: string = ERRORS[code].message,
    names: { readonly pattern?: string; readonly key?: string } = {},
  ): void {
    const { retryable, docs } = new WebMQError(code)
    this.send({ verb: 'error', code, message, retryable, docs, id, ...names })
  }
}

/** Bytes of a binary frame, text of a text frame. */
function payloadOf({ payload }: { readonly payload: WirePayload }, isBinary: boolean): WirePayload {
  if (isBinary) return typeof payload === 'string' ? new TextEncoder().encode(payload) : payload
  return typeof payload === 'string' ? payload : new TextDecoder().decode(payload)
}
