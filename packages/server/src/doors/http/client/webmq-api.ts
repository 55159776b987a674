import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ERRORS, type ErrorCode, encodeJson, type PresenceMember, WebMQError } from 'webmq-client/protocol'
import type { AnswerOf, BodyOf, QueryOf } from '../api/route.js'
import type { ROUTES } from '../api/routes.js'

export interface RequestOptions {
  /** Address of a server, `https://example.com:8080`; a path in it is kept. */
  readonly url: string
  /** An API key, or a token with grants. */
  readonly key?: string | undefined
  /** Time for one attempt; default 10,000. */
  readonly timeoutMs?: number | undefined
  /** Attempts after the first, when an error is retryable; default 3. */
  readonly retryCount?: number | undefined
  /** Default: the one of Node. */
  readonly fetch?: typeof fetch | undefined
}

export interface ApiRequest {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  /** Bytes are sent unchanged, anything else as JSON. Absent: a GET. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const TIMEOUT_MS = 10_000
const RETRY_COUNT = 3
const BACKOFF_MS = 200
const MAX_BACKOFF_MS = 10_000

/** Sends requests, and again what may succeed later. */
export class Requests {
  readonly #options: RequestOptions
  readonly #base: string

  /** @throws {WebMQError} `E_OPTION_INVALID` */
  constructor(options: RequestOptions) {
    if (!/^https?:\/\//.test(options.url) || !URL.canParse(options.url)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: 'url: not an http:// or https:// address' })
    }
    if (/\/ws\/*$/.test(options.url)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: 'url: leave out /ws, the path of WebSockets' })
    }
    this.#options = options
    this.#base = options.url.replace(/\/+$/, '')
  }

  /**
   * Resolves to the JSON of the answer.
   * @throws {WebMQError} The code that the server answers with; `E_CONNECT_FAILED` and `E_TIMEOUT` when it does not.
   */
  async send(path: string, request: ApiRequest): Promise<unknown> {
    const { retryCount = RETRY_COUNT } = this.#options
    for (let attempt = 0; ; attempt++) {
      const { error, json, retryAfterMs = 0 } = await this.#attempt(path, request)
      if (error === undefined) return json
      if (!error.retryable || attempt >= retryCount) throw error
      const backoffMs = Math.random() * BACKOFF_MS * 2 ** attempt
      await delay(Math.min(MAX_BACKOFF_MS, Math.max(retryAfterMs, backoffMs)))
    }
  }

  async #attempt(path: string, { query = {}, body, headers }: ApiRequest): Promise<Attempt> {
    const { key, timeoutMs = TIMEOUT_MS, fetch: send = fetch } = this.#options
    const parameters = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    )
    const search = parameters.length === 0 ? '' : `?${new URLSearchParams(parameters)}`
    const isBytes = body instanceof Uint8Array
    try {
      const response = await send(`${this.#base}${path}${search}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': isBytes ? 'application/octet-stream' : 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isBytes ? Buffer.from(body) : JSON.stringify(body) }),
        // A redirect would carry the key somewhere else.
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      })
      return await attemptOf(response)
    } catch (cause) {
      const isTimeout = cause instanceof Error && cause.name === 'TimeoutError'
      return { error: new WebMQError(isTimeout ? 'E_TIMEOUT' : 'E_CONNECT_FAILED', { cause }) }
    }
  }
}

interface Attempt {
  readonly error?: WebMQError
  readonly json?: unknown
  readonly retryAfterMs?: number
}

async function attemptOf(response: Response): Promise<Attempt> {
  const text = await response.text()
  const json = parsed(text)
  if (response.ok && json !== undefined) return { json }
  const { code, message, docs } = (typeof json === 'object' && json !== null ? json : {}) as Record<string, unknown>
  const retryAfterMs = 1_000 * Number(response.headers.get('retry-after') ?? 0) || 0
  if (typeof code === 'string' && Object.hasOwn(ERRORS, code)) {
    return { error: new WebMQError(code as ErrorCode, { message: String(message) }), retryAfterMs }
  }
  const detail = `HTTP status ${response.status}${typeof code === 'string' ? `, ${code}` : ''}`
  // A newer server refuses. A proxy in between says nothing about the server: it answers 404 or 403 while that restarts.
  const isRefused = typeof code === 'string' && typeof docs === 'string' && response.status < 500
  return { error: new WebMQError(isRefused ? 'E_UNSUPPORTED' : 'E_CONNECT_FAILED', { detail }), retryAfterMs }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export { WebMQError } from 'webmq-client/protocol'

type Routes = typeof ROUTES
type Answer<Name extends keyof Routes> = AnswerOf<Routes[Name]>

/** Options of {@link WebMQApi}. */
export type WebMQApiOptions = RequestOptions
/** The answer to a publish. */
export type ApiPublished = Answer<'publish'>
/** Which messages of a key to read. */
export type ApiHistoryQuery = Omit<QueryOf<Routes['history']>, 'key'>
/** Connections of one node or of all. */
export type ApiConnections = Answer<'connections'>
/** At which nodes a user is. */
export type ApiUserPlaces = Answer<'user'>
/** The nodes. */
export type ApiInfo = Answer<'info'>
/** Which connections to end: of a `user`, of an `address`, or one `session`. */
export type DisconnectRequest = BodyOf<Routes['disconnect']>
/** Which tokens to revoke: those of a `user`, or one by its `tokenId`; `until` in Unix seconds. */
export type RevokeRequest = BodyOf<Routes['revoke']>

/** One message of {@link WebMQApi.publishBatch}. */
export interface ApiBatchMessage {
  readonly key: string
  /** Any JSON value, sent as text, or bytes, sent as they are. */
  readonly payload: unknown
  /** Default: a random one, so that a retry is not delivered twice. */
  readonly id?: string
}

/** A message of the log. */
export interface ApiHistoryMessage {
  readonly key: string
  /** Absent when the message is not logged. */
  readonly position?: string
  /** The JSON value of a text message, the bytes of a binary one, or a text that is no JSON. */
  readonly payload: unknown
  /** Its place in a stream. */
  readonly stream?: Answer<'history'>['messages'][number]['stream']
}

/** Messages of a key. */
export interface ApiHistory extends Omit<Answer<'history'>, 'messages'> {
  readonly messages: readonly ApiHistoryMessage[]
}

/**
 * The HTTP API of a WebMQ server, for back ends. It loads nothing of the server itself. What fails for a passing reason
 * is sent again, each message with the same id, so that none is delivered twice.
 *
 * Every method throws a {@link WebMQError} with the code that the server answers with, or with `E_CONNECT_FAILED` or
 * `E_TIMEOUT`.
 */
export class WebMQApi {
  readonly #requests: Requests

  /** @throws {WebMQError} `E_OPTION_INVALID` */
  constructor(options: WebMQApiOptions) {
    this.#requests = new Requests(options)
  }

  /** Publishes a message. Resolves once the broker has accepted it. */
  async publish(
    key: string,
    payload: unknown,
    { id = randomUUID() }: { readonly id?: string } = {},
  ): Promise<ApiPublished> {
    const headers = { 'idempotency-key': id }
    const request =
      payload instanceof Uint8Array ? { query: { key }, body: payload } : { body: { key, payload: jsonOf(payload) } }
    return await this.#send<'publish'>('/api/publish', { headers, ...request })
  }

  /** Publishes messages in order; at most 1,000. Resolves once the broker has accepted all of them. */
  async publishBatch(messages: readonly ApiBatchMessage[]): Promise<readonly ApiPublished[]> {
    const body = {
      messages: messages.map(({ key, payload, id = randomUUID() }) =>
        payload instanceof Uint8Array
          ? { key, id, base64: Buffer.from(payload).toString('base64') }
          : { key, id, payload: jsonOf(payload) },
      ),
    }
    const { results } = await this.#send<'publishBatch'>('/api/publish/batch', { body })
    return results
  }

  /** Reads messages of a key from the log. */
  async history(key: string, query: ApiHistoryQuery = {}): Promise<ApiHistory> {
    const page = await this.#send<'history'>('/api/history', { query: { key, ...query } })
    const messages = page.messages.map(({ key, position, payload, text, base64, stream }) => ({
      key,
      ...(position === undefined ? undefined : { position }),
      ...(stream === undefined ? undefined : { stream }),
      payload: base64 === undefined ? (text ?? payload) : new Uint8Array(Buffer.from(base64, 'base64')),
    }))
    return { ...page, messages }
  }

  /** The members of a key, on all nodes. */
  async presence(key: string): Promise<readonly PresenceMember[]> {
    const { members } = await this.#send<'presence'>('/api/presence', { query: { key } })
    return members
  }

  /** Lists connections: of the node that answers, another one or all. Needs an API key, as everything below. */
  async connections(query: QueryOf<Routes['connections']> = {}): Promise<ApiConnections> {
    return await this.#send<'connections'>('/api/connections', { query: { ...query } })
  }

  /** Finds a user: at which nodes, with how many connections. */
  async user(user: string): Promise<ApiUserPlaces> {
    return await this.#send<'user'>('/api/user', { query: { user } })
  }

  /** Ends connections on all nodes. */
  async disconnect(request: DisconnectRequest): Promise<Answer<'disconnect'>> {
    return await this.#send<'disconnect'>('/api/disconnect', { body: request })
  }

  /** Revokes tokens on all nodes. */
  async revoke(request: RevokeRequest): Promise<Answer<'revoke'>> {
    return await this.#send<'revoke'>('/api/revoke', { body: request })
  }

  /** Describes the nodes. */
  async info(): Promise<ApiInfo> {
    return await this.#send<'info'>('/api/info')
  }

  async #send<Name extends keyof Routes>(path: Routes[Name]['path'], request: ApiRequest = {}): Promise<Answer<Name>> {
    return (await this.#requests.send(path, request)) as Answer<Name>
  }
}

/** What JSON cannot say is refused here, not sent as something else. */
function jsonOf(payload: unknown): unknown {
  return JSON.parse(encodeJson(payload))
}
