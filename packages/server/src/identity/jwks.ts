import type { CryptoKey, createRemoteJWKSet, FetchImplementation, FlattenedJWSInput, JWSHeaderParameters } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import { limitedBytes } from '../base/limited-bytes.js'
import { limitedSignal } from '../base/limited-signal.js'
import type { Logger } from '../base/logger.js'

/** After this time, the next token starts a fetch, so that removed keys stop working. */
const FRESH_MS = 600_000
/** An unknown key id triggers at most one fetch of the key set per interval, however many tokens carry it. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000
/** After a failure, the address is not fetched again for this time. */
const FAILURE_COOLDOWN_MS = 5000
/** While the address fails, the last good set stays in use for this time. */
const STALE_MS = 86_400_000
const FETCH_TIMEOUT_MS = 5000
/** A key set is a few kilobytes; a larger answer is not a key set. */
const MAX_SET_BYTES = 1024 * 1024
/** The code of jose's error. */
const NO_MATCHING_KEY = 'ERR_JWKS_NO_MATCHING_KEY'

export interface JwksOptions {
  readonly logger?: Logger | undefined
  /** The clock, Unix time in milliseconds. */
  readonly now?: (() => number) | undefined
}

/**
 * A key set behind an address (RFC 7517). jose fetches it, reads it and finds keys in it; this class decides when to
 * fetch.
 *
 * - The first token waits for the set. After 10 minutes a token starts a fetch and does not wait for it, so a slow
 *   address delays nobody.
 * - An unknown key id triggers one fetch, because keys rotate, and then none for 30 seconds.
 * - When the address fails, the last good set stays in use for a day, and is fetched again at most every 5 seconds.
 * - Concurrent callers share one request.
 */
export class RemoteJwks {
  readonly #url: string
  readonly #logger: Logger | undefined
  readonly #now: () => number
  readonly #closing = new AbortController()
  #fetchedAtMs = Number.NEGATIVE_INFINITY
  #unknownKeyFetchAtMs = Number.NEGATIVE_INFINITY
  #version = 0
  #keys: Promise<ReturnType<typeof createRemoteJWKSet>> | undefined
  #failure: { readonly error: WebMQError; readonly atMs: number } | undefined
  #pending: Promise<void> | undefined

  constructor(url: string, { logger, now = Date.now }: JwksOptions = {}) {
    this.#url = url
    this.#logger = logger
    this.#now = now
  }

  /**
   * Resolves to the key that a token names.
   *
   * @throws {WebMQError} `E_INTERNAL` (retryable) when no usable set can be fetched.
   * @throws jose's `JWKSNoMatchingKey` when the set has no such key.
   */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    if (this.usableVersion() === undefined) await this.#refresh()
    const keyOf = await this.#loaded()
    try {
      return await keyOf(header, token)
    } catch (error) {
      const isUnknown = error instanceof Error && 'code' in error && error.code === NO_MATCHING_KEY
      if (!isUnknown || !(await this.#refreshForUnknownKey())) throw error
      return await keyOf(header, token)
    }
  }

  /**
   * The number of the set that is in use. A token that an earlier set has verified may be signed by a key that is gone. `undefined`
   * when a token must wait for a fetch. Starts a fetch, for which nobody waits, of a set that is no longer fresh.
   */
  usableVersion(): number | undefined {
    const ageMs = this.#now() - this.#fetchedAtMs
    if (ageMs >= STALE_MS) return undefined
    // A failure is logged, and told to nobody while the set is in use.
    if (ageMs >= FRESH_MS) this.#refresh().catch(() => undefined)
    return this.#version
  }

  /** Ends a fetch that is under way; later ones fail. */
  close(): void {
    this.#closing.abort(new Error('the server stops'))
  }

  /** Fetches the set again, unless another unknown key triggered a fetch recently; returns whether it did. */
  async #refreshForUnknownKey(): Promise<boolean> {
    if (this.#pending === undefined) {
      if (this.#now() - this.#unknownKeyFetchAtMs < UNKNOWN_KEY_COOLDOWN_MS) return false
      this.#unknownKeyFetchAtMs = this.#now()
    }
    try {
      await this.#refresh()
    } catch (error) {
      // The key may be valid, so the error is retryable and the next token may trigger a fetch at once.
      this.#unknownKeyFetchAtMs = Number.NEGATIVE_INFINITY
      throw error
    }
    return true
  }

  /** Fetches the set once for all concurrent callers, but not right after a failure. */
  async #refresh(): Promise<void> {
    if (this.#failure !== undefined && this.#now() - this.#failure.atMs < FAILURE_COOLDOWN_MS) throw this.#failure.error
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = undefined
    })
    await this.#pending
  }

  async #fetch(): Promise<void> {
    const startedAtMs = this.#now()
    try {
      const keys = await this.#loaded()
      await keys.reload()
      this.#fetchedAtMs = startedAtMs
      this.#version++
      this.#failure = undefined
    } catch (err) {
      // The client does not learn the cause; the log does.
      const error = new WebMQError('E_INTERNAL', {
        detail: 'the keys that verify tokens are not available',
        cause: err,
      })
      this.#failure = { error, atMs: this.#now() }
      if (!this.#closing.signal.aborted)
        this.#logger?.warn(
          { err, url: this.#url, hasOlderSet: this.#version > 0 },
          'cannot fetch the key set that verifies tokens',
        )
      throw error
    }
  }

  #loaded(): Promise<ReturnType<typeof createRemoteJWKSet>> {
    this.#keys ??= import('jose').then(({ createRemoteJWKSet, customFetch }) =>
      createRemoteJWKSet(new URL(this.#url), {
        // When to fetch is decided here, because jose lets tokens wait for a fetch although it holds a set.
        cacheMaxAge: Number.POSITIVE_INFINITY,
        cooldownDuration: Number.POSITIVE_INFINITY,
        [customFetch]: (address, options) => this.#request(address, options),
      }),
    )
    return this.#keys
  }

  /** As jose would fetch, but limited in bytes, and ended by {@link close}. */
  async #request(url: string, { headers, redirect }: Parameters<FetchImplementation>[1]): Promise<Response> {
    using limited = limitedSignal(this.#closing.signal, FETCH_TIMEOUT_MS)
    const response = await fetch(url, { headers, redirect, signal: limited.signal })
    const bytes = await limitedBytes(response.body ?? [], MAX_SET_BYTES)
    return new Response(bytes.toString(), { status: response.status })
  }
}
