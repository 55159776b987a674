import type { TokenCause, TokenSource } from '../client-options.js'
import { WebMQError } from '../protocol/index.js'

/**
 * Gets a token from the app; `undefined` for an anonymous connection.
 * @throws {WebMQError} `E_TOKEN_UNAVAILABLE` with the app's error as its cause.
 */
export async function askForToken(
  source: string | TokenSource | undefined,
  cause: TokenCause,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (typeof source !== 'function') return source
  try {
    return (await source({ cause, signal })) || undefined
  } catch (error) {
    throw new WebMQError('E_TOKEN_UNAVAILABLE', { cause: error })
  }
}
