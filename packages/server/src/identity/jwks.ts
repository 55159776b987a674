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

/** After this time a set is read again, so that a key that was taken out of it stops working. */
const FRESH_MS = 600_000
/** Tokens that name an unknown key make the set be read again at most once in this time, whoever sends how many. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000
/** An address that failed is left alone for this time. */
const FAILURE_COOLDOWN_MS = 5000
/** While the address fails, the last good set goes on for this time; then nobody knows any more which keys are good. */
const STALE_MS = 86_400_000
const FETCH_TIMEOUT_MS = 5000
/** A key set is a few kilobytes; more is not one. */
const MAX_SET_BYTES = 1024 * 1024

/** What a key set works with; all of it has a default. */
export interface JwksOptions {
  /** Told when the set cannot be read. */
  readonly logger?: Logger | undefined
  /** The clock, Unix time in milliseconds. */
  readonly now?: (() => number) | undefined
}

/** Finds the key that a token names. Shaped as jose's `JWTVerifyGetKey`. */
export type KeyFinder = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey>

/** A set that was read. */
interface FetchedSet {
  readonly find: KeyFinder
  readonly fetchedAtMs: number
}

/**
 * A key set behind an address (RFC 7517), read when it is first needed, and kept for 10 minutes.
 *
 * - A token that names an unknown key makes the set be read again once (keys rotate), then not for 30 seconds.
 * - When the address fails, the last good set goes on for a day, and the address is tried again every 5 seconds.
 * - Readers that come at the same time share one request.
 */
export class RemoteJwks {
  readonly #url: string
  readonly #logger: Logger | undefined
  readonly #now: () => number
  #set: FetchedSet | undefined
  #pending: Promise<FetchedSet> | undefined
  #failure: { readonly error: unknown; readonly atMs: number } | undefined
  #unknownKeyFetchAtMs = Number.NEGATIVE_INFINITY

  constructor(url: string, { logger, now = Date.now }: JwksOptions = {}) {
    this.#url = url
    this.#logger = logger
    this.#now = now
  }

  /**
   * Resolves to the key that a token names.
   *
   * @throws {WebMQError} `E_INTERNAL` (retryable) when no usable set can be read.
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

  /** Reads the set again, unless that was done for another unknown key a moment ago: then it is the same set. */
  async #afterUnknownKey(set: FetchedSet): Promise<FetchedSet> {
    // Another token has brought a newer set while this one was looked at.
    if (this.#set !== undefined && this.#set !== set) return this.#set
    if (this.#pending === undefined) {
      if (this.#now() - this.#unknownKeyFetchAtMs < UNKNOWN_KEY_COOLDOWN_MS) return set
      this.#unknownKeyFetchAtMs = this.#now()
    }
    try {
      return await this.#fetchShared()
    } catch (error) {
      // Whether the key is good is not known: the token must not be refused for good, and the question stays open.
      this.#unknownKeyFetchAtMs = Number.NEGATIVE_INFINITY
      throw unavailable(error)
    }
  }

  /** Reads the set, once for all who want it now; not again right after a failure. */
  async #fetchShared(): Promise<FetchedSet> {
    if (this.#failure !== undefined && this.#now() - this.#failure.atMs < FAILURE_COOLDOWN_MS) throw this.#failure.error
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = undefined
    })
    return await this.#pending
  }

  async #fetch(): Promise<FetchedSet> {
    const fetchedAtMs = this.#now()
    try {
      const set: FetchedSet = { find: createLocalJWKSet(await readSet(this.#url)), fetchedAtMs }
      this.#set = set
      this.#failure = undefined
      return set
    } catch (error) {
      this.#failure = { error, atMs: this.#now() }
      this.#logger?.warn(
        { err: error, url: this.#url, hasOlderSet: this.#set !== undefined },
        'cannot read the key set that verifies tokens',
      )
      throw error
    }
  }
}

async function readSet(url: string): Promise<JSONWebKeySet> {
  const response = await fetch(url, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    // The keys decide who may come in: they come from the address that was configured, and from no other.
    redirect: 'error',
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`${url} answered ${response.status}`)
  }
  // createLocalJWKSet checks the shape, and throws when it is not a key set.
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

/** Whoever shows a token is not told why: the log is. */
function unavailable(cause: unknown): WebMQError {
  return new WebMQError('E_INTERNAL', { detail: 'the keys that verify tokens are not available', cause })
}
