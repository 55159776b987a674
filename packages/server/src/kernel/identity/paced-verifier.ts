import { WebMQError } from 'webmq-client/protocol'
import { Counts } from '../base/counts.js'
import { TurnQueue } from '../base/turn-queue.js'
import type { Identity } from './identity.js'
import { TOKEN_FAILURES, type TokenFailure, tokenFailureOf } from './token-failure.js'
import type { TokenVerifier } from './token-verifier.js'

/** A plain token costs up to 10 µs of the event loop. */
const TOKENS_PER_TURN = 64
/** Cost of one that jose judges, in plain tokens. */
const JUDGED_COST = 8

interface Waiting {
  readonly token: string
  readonly sinceMs: number
  readonly resolve: (identity: Identity | Promise<Identity>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Starts few verifications per turn of the event loop. The others wait, oldest first: a flood of tokens delays tokens, not
 * messages. Tokens that wait for a key to be fetched hold up no others.
 */
export class PacedVerifier implements TokenVerifier {
  readonly #verifier: TokenVerifier
  readonly #maxWaitMs: number
  readonly #failures = new Counts(TOKEN_FAILURES)
  readonly #queue = new TurnQueue<Waiting>(TOKENS_PER_TURN, (waiting) => this.#start(waiting))

  /** @param maxWaitMs A token that has waited longer is refused: its client has given up. */
  constructor(verifier: TokenVerifier, maxWaitMs: number) {
    this.#verifier = verifier
    this.#maxWaitMs = maxWaitMs
  }

  /** @throws {WebMQError} As the verifier; `E_RATE_LIMIT` (retryable) for a token that has waited too long. */
  verify(token: string): Promise<Identity> {
    const verified = new Promise<Identity>((resolve, reject) => {
      this.#queue.push({ token, sinceMs: performance.now(), resolve, reject })
    })
    verified.catch((error: unknown) => this.#failures.add(tokenFailureOf(error)))
    return verified
  }

  get failureCounts(): Readonly<Record<TokenFailure, number>> {
    return this.#failures.stats()
  }

  close(): void {
    this.#verifier.close()
  }

  #start({ token, sinceMs, resolve, reject }: Waiting): void {
    if (performance.now() - sinceMs > this.#maxWaitMs) {
      reject(new WebMQError('E_RATE_LIMIT', { detail: 'too many tokens wait to be verified' }))
      return
    }
    try {
      const identity = this.#verifier.verifyAtOnce?.(token)
      if (identity === undefined) this.#queue.charge(JUDGED_COST - 1)
      resolve(identity ?? this.#verifier.verify(token))
    } catch (error) {
      reject(error)
    }
  }
}
