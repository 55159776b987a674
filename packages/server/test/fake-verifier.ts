import { WebMQError } from 'webmq-client/protocol'
import type { Identity, TokenVerifier } from '../src/kernel/identity/index.js'

/** Accepts the given tokens. Knows `expired`, `keys-unreachable` and `too-many`; any other token is invalid. */
export class FakeVerifier implements TokenVerifier {
  readonly #identities: Readonly<Record<string, Identity>>
  readonly #waiting: (() => void)[] = []
  /** Whether answers wait until {@link release}. */
  isSlow = false

  constructor(identities: Readonly<Record<string, Identity>>) {
    this.#identities = identities
  }

  async verify(token: string): Promise<Identity> {
    if (this.isSlow) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve)
      })
    }
    const identity = this.#identities[token]
    if (identity !== undefined) return identity
    if (token === 'expired') throw new WebMQError('E_TOKEN_EXPIRED')
    if (token === 'keys-unreachable') throw new WebMQError('E_INTERNAL', { detail: 'http://keys.internal refused' })
    if (token === 'too-many') throw new WebMQError('E_RATE_LIMIT')
    throw new WebMQError('E_TOKEN_INVALID', { detail: 'signature' })
  }

  close(): void {
    this.release()
  }

  /** Releases all waiting answers. */
  release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
