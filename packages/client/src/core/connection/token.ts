import { WebMQError } from '../../protocol/errors.js'
import { checks } from '../checks.js'
import type { TokenCause, TokenSource } from '../client-options.js'

/** Visible ASCII, at most 8,192 characters [P-5.2]. A page, an object or a text in JSON is an answer, not a token. */
const TOKEN = /^(?![<{["])[!-~]{1,8192}$/

/**
 * Gets a token from the app; `undefined` for an anonymous connection.
 * @throws {WebMQError} `E_TOKEN_UNAVAILABLE` with the app's error as its cause, or if the function gave nothing: a later
 * call may give more. `E_TOKEN_INVALID` for what cannot be a token, such as an error page.
 */
export async function askForToken(
  source: string | TokenSource | undefined,
  cause: TokenCause,
  signal: AbortSignal,
): Promise<string | undefined> {
  let token: unknown = source
  if (typeof source === 'function') {
    try {
      token = await source({ cause, signal })
    } catch (error) {
      throw new WebMQError('E_TOKEN_UNAVAILABLE', { cause: error })
    }
  }
  if (source === undefined || token === null) return undefined
  if (typeof token === 'string' && TOKEN.test(token)) return token
  const isMissing = !token && token !== source
  throw new WebMQError(isMissing ? 'E_TOKEN_UNAVAILABLE' : 'E_TOKEN_INVALID', { detail: checks.token?.(token) })
}
