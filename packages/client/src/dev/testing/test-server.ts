import type { WebSocketConstructor } from '../../core/client-options.js'
import { contains } from '../../protocol/containment.js'
import type { ErrorCode } from '../../protocol/errors.js'
import type { ClientMessage, GapReason, SessionLimits, WirePayload } from '../../protocol/messages.js'
import { assertOptions, type OptionKinds } from '../../protocol/option-kinds.js'
import { formatStreamPlace } from '../../protocol/streams.js'
import { TestGroups } from './test-groups.js'
import type { TestIdentity } from './test-identity.js'
import { TestLog } from './test-log.js'
import { TestPresence } from './test-presence.js'
import { TestSession } from './test-session.js'
import { type StreamMessage, TestStreams } from './test-streams.js'
import { createTestWebSocket } from './test-websocket.js'

/** Options of {@link createTestServer}. */
export interface TestServerOptions {
  /** Returns whose the token is, and what it allows; `undefined` if it is not valid. Default: no token is required. */
  readonly verifyToken?: (token: string) => TestIdentity | undefined
  /** Patterns of the keys that are logged. Default: all. */
  readonly history?: readonly string[]
  /** Limit of logged messages; default 1,000. With 0 there are no positions, and every reconnect is a gap. */
  readonly historyMaxMessages?: number
  /** Patterns of the keys whose last message is kept, for state topics. They are logged, too. Default: none. */
  readonly retain?: readonly string[]
  /** Messages per page of a replay. Default: all. */
  readonly replayPageMessages?: number
  /** Default 25,000. */
  readonly heartbeatMs?: number
  readonly limits?: Partial<SessionLimits>
}

const KINDS = {
  ...{ verifyToken: 'function', history: 'object', historyMaxMessages: 'number', retain: 'object' },
  ...{ replayPageMessages: 'number', heartbeatMs: 'number', limits: 'object' },
} satisfies OptionKinds<TestServerOptions>

/** How {@link TestServer.drop} ends connections. */
export interface DropOptions {
  /** Default 1006: the network failed. With 4000-4999 the server sends `bye` first. */
  readonly code?: number
  /** Asks clients not to return earlier. */
  readonly retryAfterMs?: number
}

const LIMITS: SessionLimits = {
  maxPayloadBytes: 262_144,
  maxKeyBytes: 255,
  maxWords: 32,
  maxHashes: 3,
  maxListensPerConnection: 128,
  maxSearchListensPerConnection: 16,
  maxRequestsPerConnection: 256,
  maxPendingPublishBytes: 8_388_608,
  workPerSecond: 500_000,
  workBurst: 500_000,
  dedupeWindowMs: 120_000,
  dedupeMaxIds: 100_000,
}

type Decision = 'handle-unanswered' | 'ignore' | ErrorCode

/**
 * A WebMQ server in memory, for tests of apps. It speaks the protocol, routes by pattern and queue group, keeps a log,
 * removes duplicates, and produces failures on demand. It needs no port and no real time: everything happens in microtasks,
 * also under fake timers.
 */
export class TestServer {
  /** Pass it as the option `WebSocket`. */
  readonly WebSocket: WebSocketConstructor
  /** Pass it as the option `url`. */
  readonly url = 'ws://test.invalid/ws'
  /** Every message that clients have sent, in order of arrival; payloads as on the wire. */
  readonly received: ClientMessage[] = []
  /** Whether the server accepts connections; `false` simulates a server that is down. */
  isUp = true
  /** `true` simulates a network that loses everything in both directions and closes nothing. */
  isSilent = false
  /** Presence: `enter` and `leave` act for other clients; members of lost connections stay until `lapse`. */
  readonly presence = new TestPresence()
  readonly #sessions = new Set<TestSession>()
  readonly #groups = new TestGroups()
  readonly #streams = new TestStreams()
  readonly #log: TestLog
  readonly #positions = new Map<string, string | undefined>()
  #messageCount = 0
  readonly #decisions = new Map<ClientMessage['verb'], Decision[]>()
  readonly #revoked = new Set<string>()
  #sessionCount = 0

  constructor(options: TestServerOptions = {}) {
    assertOptions('createTestServer: ', options, KINDS)
    const { heartbeatMs = 25_000, historyMaxMessages = 1_000, verifyToken, limits } = options
    const { history = ['#'], replayPageMessages = Number.POSITIVE_INFINITY, retain = [] } = options
    this.#log = new TestLog(historyMaxMessages, [...history, ...retain])
    const allLimits = { ...LIMITS, ...limits }
    this.WebSocket = createTestWebSocket((socket) => {
      if (!this.isUp) return undefined
      const session = new TestSession(
        {
          log: this.#log,
          replayPageMessages,
          maxListens: allLimits.maxListensPerConnection,
          verifyToken,
          intercept: (message) => this.#intercept(message),
          publish: (message, from) => this.#publish(message, from),
          stream: (message) => this.#stream(message),
          streams: this.#streams,
          isRevoked: (pattern) => this.#revoked.has(pattern),
          isRetained: (pattern) => retain.some((rule) => contains(rule, pattern)),
          presence: this.presence,
          groups: this.#groups,
          onClosed: (gone) => this.#sessions.delete(gone),
        },
        { send: (data) => this.isSilent || socket.send(data), close: socket.close },
      )
      this.#sessions.add(session)
      session.send({
        verb: 'welcome',
        protocol: 'webmq.v1',
        auth: verifyToken ? 'required' : 'none',
        session: `session-${++this.#sessionCount}`,
        node: 'test',
        version: '0.0.0',
        heartbeatMs,
        limits: allLimits,
      })
      return session
    })
  }

  /** Number of open connections. */
  get connectionCount(): number {
    return this.#sessions.size
  }

  /** Patterns with a listen, over all connections. */
  get patterns(): readonly string[] {
    return [...new Set([...this.#sessions].flatMap(({ patterns }) => [...patterns]))]
  }

  /** Publishes as another client: bytes unchanged, everything else as JSON. */
  publish(key: string, payload: unknown): void {
    const wire = payload instanceof Uint8Array ? payload : JSON.stringify(payload)
    this.#publish({ verb: 'publish', key, echo: true, payload: wire })
  }

  /** Removes a key from the state, as another client. */
  remove(key: string): void {
    this.#publish({ verb: 'publish', key, echo: true, payload: '' })
  }

  /** Publishes to a key without a log: the message has no position, and absent clients do not get it later. */
  publishUnlogged(key: string, payload: unknown): void {
    const text = JSON.stringify(payload)
    for (const session of this.#sessions) session.deliver({ key, payload: text })
    this.#groups.publish(key, text)
  }

  /** Ends every connection. Clients return unless `isUp` is false or the code is terminal. */
  drop({ code = 1006, retryAfterMs }: DropOptions = {}): void {
    for (const session of this.#sessions) {
      if (code >= 4000) session.send({ verb: 'bye', code, ...(retryAfterMs !== undefined && { retryAfterMs }) })
      session.close(code)
    }
  }

  /** Answers the next message of that verb with an error; calls add up. */
  refuse(verb: Exclude<ClientMessage['verb'], 'reply' | 'ping'>, code: ErrorCode): void {
    this.#decide(verb, code)
  }

  /** Ignores the next message of that verb; calls add up. */
  ignore(verb: ClientMessage['verb']): void {
    this.#decide(verb, 'ignore')
  }

  /** Tells all listeners of this pattern that they have missed messages. */
  gap(pattern: string, reason: GapReason = 'slow-consumer'): void {
    for (const session of this.#sessions) {
      if (session.patterns.has(pattern)) session.send({ verb: 'gap', pattern, reason })
    }
  }

  /**
   * Ends all listens of this pattern and presence at this key, and refuses new ones, as if tokens no longer granted
   * them.
   */
  revoke(pattern: string): void {
    this.#revoked.add(pattern)
    for (const session of this.#sessions) session.revoke(pattern)
  }

  /** Loses the log: the next reconnect gets the gap `history-expired`. */
  expireHistory(): void {
    this.#log.expire()
  }

  /** Replaces the log: the next reconnect gets the gap `epoch-changed`. */
  restartHistory(): void {
    this.#log.restart()
    this.#streams.clear()
  }

  /** Gives up the writer of this key, as if it had been silent for too long: its stream ends as `lost`. */
  loseStream(key: string): void {
    const next = this.#streams.active(key)
    if (next) this.#stream({ ...next, key, kind: 'lost', payload: '' })
  }

  /** Tells all clients that their tokens expire. */
  expireTokens(inMs: number): void {
    for (const session of this.#sessions) session.send({ verb: 'expiring', inMs })
  }

  /** Handles the next message of that verb, but loses the answer; calls add up. */
  loseAnswer(verb: ClientMessage['verb']): void {
    this.#decide(verb, 'handle-unanswered')
  }

  #decide(verb: ClientMessage['verb'], decision: Decision): void {
    this.#decisions.set(verb, [...(this.#decisions.get(verb) ?? []), decision])
  }

  #intercept(message: ClientMessage): 'handle' | Decision {
    if (this.isSilent) return 'ignore'
    this.received.push(message)
    return this.#decisions.get(message.verb)?.shift() ?? 'handle'
  }

  #publish(message: Extract<ClientMessage, { verb: 'publish' }>, from?: TestSession) {
    const { key, payload, messageId, echo, ephemeral } = message
    // No key contains a space [P-3.1].
    const messageName = messageId === undefined ? undefined : `${key} ${messageId}`
    if (messageName !== undefined && this.#positions.has(messageName)) {
      return { position: this.#positions.get(messageName), duplicate: true }
    }
    const meta = { userId: from?.userId, timeMs: Date.now(), id: `message-${++this.#messageCount}` }
    const isLogged = !ephemeral && this.#log.logs(key)
    const sent = isLogged ? this.#log.append(key, copyOf(payload), meta) : { key, payload: copyOf(payload), meta }
    const position = 'offset' in sent ? this.#log.position(sent.offset) : undefined
    if (messageName !== undefined) this.#positions.set(messageName, position)
    for (const session of this.#sessions) if (echo || session !== from) session.deliver(sent)
    this.#groups.publish(key, sent.payload)
    return { position, duplicate: false }
  }

  #stream(message: StreamMessage) {
    const { key, kind } = message
    const payload = copyOf(message.payload)
    const refusal = this.#log.logs(key) ? this.#streams.check(message) : 'E_UNSUPPORTED'
    if (refusal === 'duplicate') return { duplicate: true }
    if (refusal !== undefined) return { refusal, duplicate: false }
    const stream = formatStreamPlace(message)
    const sent = kind === 'beat' ? { key, payload, meta: { stream } } : this.#log.append(key, payload, { stream })
    const position = 'offset' in sent ? this.#log.position(sent.offset) : undefined
    if (kind !== 'beat') this.#streams.take({ ...message, payload }, position)
    for (const session of this.#sessions) session.deliver(sent)
    return { duplicate: false, position }
  }
}

/** Makes a server in memory. */
export function createTestServer(options?: TestServerOptions): TestServer {
  return new TestServer(options)
}

function copyOf(payload: WirePayload): WirePayload {
  return typeof payload === 'string' ? payload : payload.slice()
}
