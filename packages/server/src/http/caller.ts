import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type { Revocations } from '../cluster/index.js'
import { unmapped } from '../identity/client-address.js'
import { ANONYMOUS, type Identity, type TokenVerifier } from '../identity/index.js'
import type { TrustedProxies } from '../identity/trusted-proxies.js'
import { isLocalRequest } from './local-request.js'

/** Who sends an HTTP request: somebody with an API key, who may do everything, or a client with its grants. */
export type Caller = { readonly kind: 'operator' } | ClientCaller

/** A client, without a connection that outlives the request. */
export interface ClientCaller {
  readonly kind: 'client'
  readonly identity: Identity
  /** IP address. */
  readonly address: string
}

/** What {@link Callers} works with. */
export interface CallersContext {
  /** The present keys: an array that stays the same until they change. */
  readonly apiKeys: () => readonly string[]
  /** Absent when the server asks for no token. */
  readonly verifier: Pick<TokenVerifier, 'verify'> | undefined
  readonly revocations: () => Pick<Revocations, 'covers'> | undefined
  /** Whether a page of this origin may ask. */
  readonly isOriginAllowed: (origin: string | undefined, host: string | undefined) => boolean
  /** Whether anonymous clients must be on this machine. */
  readonly isForThisMachineOnly: boolean
  /** Finds out which client a request is from. */
  readonly proxies: Pick<TrustedProxies, 'clientAddress'>
}

const OPERATOR: Caller = { kind: 'operator' }

/** Finds out who sends an HTTP request. The rules are those of an upgrade, and API keys. */
export class Callers {
  readonly #context: CallersContext
  #keys: readonly string[] = []
  #digests: readonly Buffer[] = []

  constructor(context: CallersContext) {
    this.#context = context
  }

  /**
   * Refuses requests of pages that may not connect. Browsers send `Origin` with every request that can change something
   * and with every one whose answer a foreign page could read.
   * @throws {WebMQError} `E_ORIGIN_FORBIDDEN`
   */
  assertOrigin({ headers: { origin, host } }: Pick<IncomingMessage, 'headers'>): void {
    if (!this.#context.isOriginAllowed(origin, host)) throw new WebMQError('E_ORIGIN_FORBIDDEN')
  }

  /**
   * @throws {WebMQError} `E_UNAUTHENTICATED` without a key or token; `E_INSECURE` for an anonymous request from beyond
   *   this machine; `E_TOKEN_REVOKED`; the errors of {@link TokenVerifier.verify}.
   */
  async callerOf(request: Pick<IncomingMessage, 'headers' | 'socket'>): Promise<Caller> {
    const { verifier, revocations, isForThisMachineOnly, proxies } = this.#context
    const { authorization } = request.headers
    const remoteAddress = unmapped(request.socket.remoteAddress ?? '')
    const address = proxies.clientAddress(
      remoteAddress,
      (name) => [request.headers[name]].flat().join(', ') || undefined,
    )
    if (authorization !== undefined) {
      const [, credential] = /^bearer +(\S+)$/i.exec(authorization) ?? []
      if (credential === undefined) throw unauthenticated('the header Authorization is not Bearer <key or token>')
      if (this.#isApiKey(credential)) return OPERATOR
      if (verifier === undefined) throw unauthenticated('this is no API key of this server')
      const identity = await verifier.verify(credential)
      if (revocations()?.covers(identity) === true) throw new WebMQError('E_TOKEN_REVOKED')
      return { kind: 'client', identity, address }
    }
    if (verifier !== undefined) throw unauthenticated('send Authorization: Bearer <key or token>')
    if (isForThisMachineOnly && !isLocalRequest(request)) {
      throw new WebMQError('E_INSECURE', { detail: 'without a key, only clients of this machine may ask' })
    }
    return { kind: 'client', identity: ANONYMOUS, address }
  }

  /** Takes the same time for every key, right or wrong. */
  #isApiKey(credential: string): boolean {
    const keys = this.#context.apiKeys()
    if (keys !== this.#keys) [this.#keys, this.#digests] = [keys, keys.map(digestOf)]
    const digest = digestOf(credential)
    let isKnown = false
    for (const known of this.#digests) isKnown = timingSafeEqual(digest, known) || isKnown
    return isKnown
  }
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

function unauthenticated(detail: string): WebMQError {
  return new WebMQError('E_UNAUTHENTICATED', { detail })
}
