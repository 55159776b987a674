import { setTimeout as delay } from 'node:timers/promises'
import { ERRORS, type ErrorCode, WebMQError } from 'webmq-client/protocol'

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
  const { code, message } = (typeof json === 'object' && json !== null ? json : {}) as Record<string, unknown>
  const retryAfterMs = 1_000 * Number(response.headers.get('retry-after') ?? 0) || 0
  if (typeof code === 'string' && Object.hasOwn(ERRORS, code)) {
    return { error: new WebMQError(code as ErrorCode, { message: String(message) }), retryAfterMs }
  }
  // A proxy in between, or a newer server.
  const detail = `HTTP status ${response.status}${typeof code === 'string' ? `, ${code}` : ''}`
  const isPassing = response.status === 429 || response.status >= 500
  return { error: new WebMQError(isPassing ? 'E_CONNECT_FAILED' : 'E_UNSUPPORTED', { detail }), retryAfterMs }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
