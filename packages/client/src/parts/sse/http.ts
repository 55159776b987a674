import { type ErrorCode, WebMQError } from '../../protocol/errors.js'

/** What went wrong with a request: the error of the server, or that there was none. */
export class HttpError extends Error {
  /** Absent: the server did not answer as WebMQ does. */
  readonly error: WebMQError | undefined

  constructor(error?: WebMQError, cause?: unknown) {
    super(error?.message ?? 'request failed', { cause })
    this.error = error
  }
}

/** Paths beside that of the WebSocket: `/ws` stands for `/sse`, `/health` and `/api/publish`. */
export function besideWebSocket(url: string, path: string): URL {
  return new URL(path, url.replace(/^ws/, 'http'))
}

/**
 * Sends a request with the token.
 * @throws {HttpError} Also for an answer that is no success.
 */
export async function request(url: URL, token: string | undefined, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers)
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  let response: Response
  try {
    response = await fetch(url, { ...init, headers, cache: 'no-store', credentials: 'same-origin' })
  } catch (cause) {
    throw new HttpError(undefined, cause)
  }
  if (response.ok) return response
  const answer = await response.json().catch(() => undefined)
  const { code, message, docs, retryable } = (answer ?? {}) as Readonly<Record<string, unknown>>
  // A proxy answers with pages, and with JSON of its own: only what the server itself says may be final [P-1.4].
  const isOurs = typeof code === 'string' && /^E_[A-Z_\d]+$/.test(code) && typeof docs === 'string'
  if (!isOurs) throw new HttpError()
  const about = { message: String(message), ...(typeof retryable === 'boolean' && { retryable }) }
  throw new HttpError(new WebMQError(code as ErrorCode, about))
}
