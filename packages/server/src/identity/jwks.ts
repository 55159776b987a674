import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from 'jose'
import { WebMQError } from 'webmq-client/protocol'
import type { Logger } from '../logger.js'
import { limitedSignal } from '../ports/limited-signal.js'

/** A set is fetched again after this time, so that removed keys stop working. */
const FRESH_MS = 600_000
/** An unknown key id triggers at most one refetch of the key set per interval, however many tokens carry it. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000
/** After a failure, the address is not fetched again for this time. */
const FAILURE_COOLDOWN_MS = 5000
/** While the address fails, the last good set stays in use for this time. */
const STALE_MS = 86_400_000
const FETCH_TIMEOUT_MS = 5000
/** A key set is a few kilobytes; a larger answer is not a key set. */
const MAX_SET_BYTES = 1024 * 1024

/** Options of {@link RemoteJwks}; all are optional. */
export interface JwksOptions {
  /** Gets a warning when the set cannot be fetched. */
  readonly logger?: Logger | undefined
  /** The clock, Unix time in milliseconds. */
  readonly now?: (() => number) | undefined
}

/** Finds the key that a token names; compatible with jose's `JWTVerifyGetKey`. */
export type KeyFinder = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>

/** A set and the time of its fetch. */
interface FetchedSet {
  readonly find: KeyFinder
  readonly fetchedAtMs: number
}

/**
 * A key set behind an address (RFC 7517). It is fetched on first use and cached for 10 minutes.
 *
 * - An unknown key id triggers one refetch, because keys rotate, and then none for 30 seconds.
 * - When the address fails, the last good set stays in use for a day, and is fetched again at most every 5 seconds.
 * - Concurrent callers share one request.
 */
export class RemoteJwks {
  readonly #url: string
  readonly #logger: Logger | undefined
  readonly #now: () => number
  #set: FetchedSet | undefined
  #pending: Promise<FetchedSet> | undefined
  #failure: { readonly error: unknown; readonly atMs: number } | undefined
  #unknownKeyFetchAtMs = Number.NEGATIVE_INFINITY
  readonly #closing = new AbortController()

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
    const set = await this.#current()
    try {
      return await set.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      const newer = await this.#afterUnknownKey(set)
      if (newer === set) throw error
      return await newer.find(header, token)
    }
  }

  /** Ends a fetch that is under way; later ones fail. */
  close(): void {
    this.#closing.abort(new Error('the server stops'))
  }

  async #current(): Promise<FetchedSet> {
    const set = this.#set
    const ageMs = set === undefined ? Number.POSITIVE_INFINITY : this.#now() - set.fetchedAtMs
    if (set !== undefined && ageMs < FRESH_MS) return set
    const usable = ageMs < STALE_MS ? set : undefined
    try {
      return await this.#fetchShared()
    } catch (error) {
      if (usable === undefined) throw unavailable(error)
      return usable
    }
  }

  /** Fetches the set again, unless another unknown key triggered a fetch recently; then returns the same set. */
  async #afterUnknownKey(set: FetchedSet): Promise<FetchedSet> {
    // Another token has triggered a fetch meanwhile.
    if (this.#set !== undefined && this.#set !== set) return this.#set
    if (this.#pending === undefined) {
      if (this.#now() - this.#unknownKeyFetchAtMs < UNKNOWN_KEY_COOLDOWN_MS) return set
      this.#unknownKeyFetchAtMs = this.#now()
    }
    try {
      return await this.#fetchShared()
    } catch (error) {
      // The key may be valid, so the error is retryable and the next token may fetch at once.
      this.#unknownKeyFetchAtMs = Number.NEGATIVE_INFINITY
      throw unavailable(error)
    }
  }

  /** Fetches the set once for all concurrent callers, but not right after a failure. */
  async #fetchShared(): Promise<FetchedSet> {
    if (this.#failure !== undefined && this.#now() - this.#failure.atMs < FAILURE_COOLDOWN_MS) throw this.#failure.error
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = undefined
    })
    return await this.#pending
  }

  async #fetch(): Promise<FetchedSet> {
    const fetchedAtMs = this.#now()
    const { signal, release } = limitedSignal(this.#closing.signal, FETCH_TIMEOUT_MS)
    try {
      const set: FetchedSet = { find: createLocalJWKSet(await readSet(this.#url, signal)), fetchedAtMs }
      this.#set = set
      this.#failure = undefined
      return set
    } catch (error) {
      this.#failure = { error, atMs: this.#now() }
      if (!this.#closing.signal.aborted)
        this.#logger?.warn(
          { err: error, url: this.#url, hasOlderSet: this.#set !== undefined },
          'cannot fetch the key set that verifies tokens',
        )
      throw error
    } finally {
      release()
    }
  }
}

async function readSet(url: string, signal: AbortSignal): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    // Keys decide who may connect, so they must come from the configured address.
    redirect: 'error',
    signal,
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`${url} answered ${response.status}`)
  }
  // createLocalJWKSet checks the shape and throws when it is not a key set.
  return JSON.parse(await readText(response, url)) as JSONWebKeySet
}

async function readText(response: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.byteLength
    if (sizeBytes > MAX_SET_BYTES) throw new Error(`${url} answered with more than ${MAX_SET_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The client does not learn the cause; the log does. */
function unavailable(cause: unknown): WebMQError {
  return new WebMQError('E_INTERNAL', { detail: 'the keys that verify tokens are not available', cause })
}
