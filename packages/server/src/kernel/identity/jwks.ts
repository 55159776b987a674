import { createPublicKey, type JsonWebKey } from 'node:crypto'
import type { CryptoKey, createRemoteJWKSet, FetchImplementation, FlattenedJWSInput, JWSHeaderParameters } from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import { isObject } from '../base/is-object.js'
import { limitedBytes } from '../base/limited-bytes.js'
import { limitedSignal } from '../base/limited-signal.js'
import type { Logger } from '../base/logger.js'
import { algorithmsOf } from './keys.js'

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
/** Each token is compared with all keys of a set. */
const MAX_SET_KEYS = 1_000
/** Keys that are tried for a token that names none (`kid`), or a name that several have. */
const MAX_TRIED_KEYS = 8
/** Codes of jose's errors. */
const NO_MATCHING_KEY = 'ERR_JWKS_NO_MATCHING_KEY'
const SEVERAL_MATCHING_KEYS = 'ERR_JWKS_MULTIPLE_MATCHING_KEYS'

export interface JwksOptions {
  readonly logger?: Logger | undefined
  /** A monotonic clock, in milliseconds. */
  readonly now?: (() => number) | undefined
}

/**
 * A key set behind an address (RFC 7517). jose fetches it, reads it and finds keys in it; this class decides when to
 * fetch.
 *
 * - The first token waits for the set. After 10 minutes a token starts a fetch and does not wait for it, so a slow
 *   address delays nobody.
 * - An unknown key id triggers one fetch, because keys rotate, and then none for 30 seconds.
 * - When the address fails, the last good set stays in use for a day, and is fetched again at most every 5 seconds. A set
 *   without a usable key is a failure: a provider that restarts may answer so.
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

  constructor(url: string, { logger, now = () => performance.now() }: JwksOptions = {}) {
    this.#url = url
    this.#logger = logger
    this.#now = now
  }

  /**
   * Resolves to the key that a token names. Of several that fit a token without a name, it is the one that has signed it; if none
   * has, it is any of them.
   *
   * @throws {WebMQError} `E_INTERNAL` (retryable) when no usable set can be fetched.
   * @throws jose's `JWKSNoMatchingKey` when the set has no such key, `JWKSMultipleMatchingKeys` when too many fit.
   */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    if (this.usableVersion() === undefined) await this.#refresh()
    const found = await this.#keyOf(header, token)
    const isKnown = 'key' in found && found.isSigner
    if (!isKnown && (await this.#refreshForUnknownKey())) return keyIn(await this.#keyOf(header, token))
    return keyIn(found)
  }

  /** The key of the set that is here, and whether it has signed the token, as far as anybody can tell without a look. */
  async #keyOf(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<Found> {
    const keyOf = await this.#loaded()
    const { flattenedVerify } = await import('jose')
    const hasSigned = async (key: CryptoKey) =>
      await flattenedVerify(token, key).then(
        () => true,
        () => false,
      )
    try {
      const key = await keyOf(header, token)
      return { key, isSigner: header.kid !== undefined || (await hasSigned(key)) }
    } catch (error) {
      if (isOfJose(error, NO_MATCHING_KEY)) return { error }
      if (!isOfJose(error, SEVERAL_MATCHING_KEYS)) throw error
      return await signerOf(error as unknown as AsyncIterable<CryptoKey>, hasSigned)
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
    const text = (await limitedBytes(response.body ?? [], MAX_SET_BYTES)).toString()
    if (response.status === 200) assertUsableSet(text)
    return new Response(text, { status: response.status })
  }
}

type Found = { readonly key: CryptoKey; readonly isSigner: boolean } | { readonly error: unknown }

function keyIn(found: Found): CryptoKey {
  if ('error' in found) throw found.error
  return found.key
}

function isOfJose(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** @param several jose's error, which iterates over the keys. */
async function signerOf(
  several: AsyncIterable<CryptoKey>,
  hasSigned: (key: CryptoKey) => Promise<boolean>,
): Promise<Found> {
  let last: Found = { error: several }
  let count = 0
  for await (const key of several) {
    if (count++ === MAX_TRIED_KEYS) return { error: several }
    if (await hasSigned(key)) return { key, isSigner: true }
    last = { key, isSigner: false }
  }
  return last
}

/** @throws unless a key of the set can verify tokens. */
function assertUsableSet(text: string): void {
  const set: unknown = JSON.parse(text)
  const keys: unknown = isObject(set) ? set.keys : undefined
  if (Array.isArray(keys) && keys.length > MAX_SET_KEYS)
    throw new Error(`the answer has more than ${MAX_SET_KEYS} keys`)
  if (!Array.isArray(keys) || !keys.some(isUsable)) throw new Error('the answer has no key that can verify tokens')
}

function isUsable(jwk: unknown): boolean {
  if (!isObject(jwk)) return false
  const { alg, d, use, key_ops: operations } = jwk
  const isForTokens = use === undefined || use === 'sig'
  const verifies = operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
  // jose takes no private key out of a set.
  if (d !== undefined || !isForTokens || !verifies) return false
  try {
    const algorithms = algorithmsOf(createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' }))
    return typeof alg === 'string' ? algorithms.includes(alg) : algorithms.length > 0
  } catch {
    // It is of a type that this server does not know, or incomplete.
    return false
  }
}
