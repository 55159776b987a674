import {
  type ClientMessage,
  decodeClientMessage,
  ERRORS,
  type ErrorCode,
  encodeMessageFrame,
  encodeMeta,
  encodeServerMessage,
  matches,
  type TextServerMessage,
  WebMQError,
  type WirePayload,
} from '../protocol/index.js'
import type { TestGroups, TestMember } from './test-groups.js'
import type { Replayed, SentMessage, TestLog } from './test-log.js'
import type { TestPresence, TestWatcher } from './test-presence.js'
import type { ServerEnd, ServerSide } from './test-websocket.js'

type From<V extends ClientMessage['verb']> = Extract<ClientMessage, { verb: V }>

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
  #userId: string | undefined
  /** One of its listens has asked for meta [P-15.3]. */
  #hasMeta = false
  #isMute = false

  constructor(context: TestSessionContext, socket: ServerEnd) {
    this.#context = context
    this.#socket = socket
    this.#isAuthenticated = !context.verifyToken
  }

  /** Patterns of this connection. */
  get patterns(): ReadonlySet<string> {
    return this.#patterns
  }

  /** The user of its token. */
  get userId(): string | undefined {
    return this.#userId
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
    switch (message.verb) {
      case 'ping':
        this.send({ verb: 'pong', ...positionOption(this.#context.log.position()) })
        break
      case 'auth':
        this.#authenticate(message)
        break
      case 'listen':
        if (message.group === undefined) this.#listen(message)
        else this.#join(message, message.group)
        break
      case 'unlisten':
        if (this.#left(message)) this.send({ verb: 'ok', id: message.id })
        else this.#refuse(message.id, 'E_NOT_LISTENING')
        break
      case 'publish': {
        const payload = payloadOf(message, isBinary)
        const { position, duplicate } = this.#context.publish({ ...message, payload }, this)
        const { id } = message
        if (id !== undefined) this.send({ verb: 'ok', id, duplicate, ...(position !== undefined && { position }) })
        break
      }
      case 'history':
        this.#history(message)
        break
      case 'request': {
        const { id } = message
        const payload = payloadOf(message, isBinary)
        const refusal = this.#context.groups.request(this, { ...message, payload }, () => this.send({ verb: 'ok', id }))
        if (refusal) this.#refuse(id, refusal)
        break
      }
      case 'reply': {
        const payload = payloadOf(message, isBinary)
        if (!this.#context.groups.reply(this, { ...message, payload })) this.#refuse(message.id, 'E_TIMEOUT')
        break
      }
      case 'presence':
        this.#presence(message)
    }
  }

  #join({ id, pattern, since, last, rewindMs, overflow, respond }: From<'listen'>, group: string): void {
    const { groups, isRevoked, maxListens } = this.#context
    if ((since ?? last ?? rewindMs ?? overflow) !== undefined) this.#refuse(id, 'E_UNSUPPORTED')
    else if (isRevoked(pattern)) this.#refuse(id, 'E_FORBIDDEN')
    else if (this.#listenCount >= maxListens) this.#refuse(id, 'E_LISTEN_LIMIT')
    else {
      groups.join({ group, pattern, isResponder: respond === true }, this)
      this.send({ verb: 'ok', id })
    }
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
      const userId = this.#userId
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
      this.#userId = identity.userId
      this.send({ verb: 'ok', id, result: identity })
    } else {
      const code = ERRORS.E_TOKEN_INVALID.closeCode
      this.#refuse(id, 'E_TOKEN_INVALID')
      this.send({ verb: 'bye', code })
      this.close(code)
    }
  }

  #listen({ id, pattern, since, last, rewindMs, state, meta }: From<'listen'>): void {
    const { log, isRevoked, maxListens, replayPageMessages: limit, isRetained } = this.#context
    if (state && !isRetained(pattern)) {
      this.#refuse(id, 'E_UNSUPPORTED')
      return
    }
    if (isRevoked(pattern)) {
      this.#refuse(id, 'E_FORBIDDEN')
      return
    }
    if (!this.#patterns.has(pattern) && this.#listenCount >= maxListens) {
      this.#refuse(id, 'E_LISTEN_LIMIT')
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
    this.#replay(
      id,
      since === undefined && replayed.gap === 'no-history' ? { ...replayed, gap: undefined } : replayed,
      {
        ...(since !== undefined && replayed.gap === undefined && { recovered: true }),
        ...(state && { state }),
      },
      meta,
    )
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
    this.#replay(id, { ...replayed, messages, ...(isTold && { gap: 'history-expired' }) }, {}, meta)
  }

  #replay(
    id: string,
    { messages, position, more, gap }: Replayed,
    options: { readonly recovered?: true; readonly state?: true },
    hasMeta: boolean | undefined,
  ): void {
    this.send({
      verb: 'ok',
      id,
      ...options,
      ...positionOption(position),
      ...(gap !== undefined && { gap }),
      ...(messages.length > 0 && { replayed: messages.length }),
      ...(more && { more }),
    })
    for (const message of messages) this.#send(message, true, hasMeta)
  }

  #send({ key, payload, offset, meta: stamp }: SentMessage, replayed: boolean, hasMeta: boolean | undefined): void {
    const { log } = this.#context
    const meta = hasMeta ? stamp : undefined
    const text = offset === undefined ? undefined : log.position(offset)
    if (typeof payload === 'string') {
      this.send({ verb: 'message', key, replayed, meta, payload, ...positionOption(text) })
      return
    }
    const position = offset === undefined || text === undefined ? undefined : { epoch: log.epoch, offset }
    this.#socket.send(encodeMessageFrame(key, position, replayed, payload, meta && encodeMeta(meta)))
  }

  #refuse(
    id: string | undefined,
    code: ErrorCode,
    message: string = ERRORS[code].message,
    names: { readonly pattern?: string; readonly key?: string } = {},
  ): void {
    const { retryable, docs } = new WebMQError(code)
    this.send({ verb: 'error', code, message, retryable, docs, ...(id !== undefined && { id }), ...names })
  }
}

function positionOption(position: string | undefined): { readonly position?: string } {
  return position === undefined ? {} : { position }
}

/** Bytes of a binary frame, text of a text frame. */
function payloadOf({ payload }: { readonly payload: WirePayload }, isBinary: boolean): WirePayload {
  if (isBinary) return typeof payload === 'string' ? new TextEncoder().encode(payload) : payload
  return typeof payload === 'string' ? payload : new TextDecoder().decode(payload)
}
