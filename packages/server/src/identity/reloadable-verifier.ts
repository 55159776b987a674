import type { Identity } from './identity.js'
import { RemoteJwks } from './jwks.js'
import {
  createTokenVerifier,
  type JwtOptions,
  type TokenVerifier,
  type TokenVerifierOptions,
} from './token-verifier.js'

/**
 * A verifier whose keys and rules can be replaced while the server runs. A token is verified by those that are in use when
 * its turn comes. A key set whose address stays the same keeps what it has fetched: its address may be away.
 */
export class ReloadableVerifier implements TokenVerifier {
  readonly #options: Omit<TokenVerifierOptions, 'keySet'>
  #keySet: { readonly url: string; readonly keys: RemoteJwks } | undefined
  #verifier: TokenVerifier

  /** @throws {WebMQError} As {@link createTokenVerifier}. */
  constructor(jwt: JwtOptions, options: Omit<TokenVerifierOptions, 'keySet'> = {}) {
    this.#options = options
    this.#keySet = this.#keySetOf(jwt)
    this.#verifier = createTokenVerifier(jwt, { ...options, keySet: this.#keySet?.keys })
  }

  verify(token: string): Promise<Identity> {
    return this.#verifier.verify(token)
  }

  verifyAtOnce(token: string): Identity | undefined {
    return this.#verifier.verifyAtOnce?.(token)
  }

  /**
   * Prepares other keys and rules. The returned function puts them to use.
   * @param wordLimits Replaces the limits of granted patterns; absent: they stay.
   * @throws {WebMQError} As {@link createTokenVerifier}; nothing has changed.
   */
  prepare(jwt: JwtOptions, wordLimits = this.#options.wordLimits): () => void {
    const keySet = this.#keySetOf(jwt)
    const verifier = createTokenVerifier(jwt, { ...this.#options, wordLimits, keySet: keySet?.keys })
    return () => {
      if (keySet !== this.#keySet) this.#keySet?.keys.close()
      this.#keySet = keySet
      this.#verifier = verifier
    }
  }

  close(): void {
    this.#keySet?.keys.close()
  }

  #keySetOf({ jwksUrl: url }: JwtOptions): { readonly url: string; readonly keys: RemoteJwks } | undefined {
    if (url === undefined) return undefined
    const { logger, now } = this.#options
    return this.#keySet?.url === url ? this.#keySet : { url, keys: new RemoteJwks(url, { logger, now }) }
  }
}
