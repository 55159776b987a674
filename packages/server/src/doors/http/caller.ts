import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import { type Actor, clientOverHttp, operatorAt } from '../../kernel/identity/actor.js'
import { unmapped } from '../../kernel/identity/client-address.js'
import { ANONYMOUS } from '../../kernel/identity/index.js'
import { isOriginAllowed } from '../../kernel/identity/origin.js'
import { isForThisMachineOnly, originPolicyOf } from '../options/access.js'
import type { HttpContext } from './context.js'

type RequestParts = Pick<IncomingMessage, 'headers' | 'socket'>

/** Finds out who sends an HTTP request. The rules are those of an upgrade, and API keys. */
export class Callers {
  readonly #context: Pick<HttpContext, 'options' | 'verifier' | 'node' | 'proxies'>
  readonly #isForThisMachineOnly: boolean
  #keys: readonly string[] = []
  #digests: readonly Buffer[] = []

  constructor(context: Pick<HttpContext, 'options' | 'verifier' | 'node' | 'proxies'>) {
    this.#context = context
    this.#isForThisMachineOnly = isForThisMachineOnly(context.options)
  }

  isOriginAllowed(origin: string | undefined, host: string | undefined): boolean {
    const { origins, ownHosts } = originPolicyOf(this.#context.options)
    return isOriginAllowed(origin, host, origins, ownHosts)
  }

  /**
   * Refuses requests of pages that may not connect. Browsers send `Origin` with every request that can change something
   * and with every one whose answer a foreign page could read.
   * @throws {WebMQError} `E_ORIGIN_FORBIDDEN`
   */
  assertOrigin({ headers: { origin, host } }: Pick<IncomingMessage, 'headers'>): void {
    if (!this.isOriginAllowed(origin, host)) throw new WebMQError('E_ORIGIN_FORBIDDEN')
  }

  /** The address of the client: of the peer, or what a trusted proxy says. */
  addressOf({ socket, headers }: RequestParts): string {
    return this.#context.proxies.clientAddress(unmapped(socket.remoteAddress ?? ''), headerOf(headers))
  }

  /** @param remoteAddress Of a peer. */
  isProxy(remoteAddress: string): boolean {
    return this.#context.proxies.includes(unmapped(remoteAddress))
  }

  isLocal({ socket, headers }: RequestParts): boolean {
    return this.#context.proxies.isLocal(unmapped(socket.remoteAddress ?? ''), headerOf(headers))
  }

  /**
   * @throws {WebMQError} `E_UNAUTHENTICATED` without a key or token; `E_INSECURE` for an anonymous request from beyond
   *   this machine; `E_TOKEN_REVOKED`; the errors of {@link TokenVerifier.verify}.
   */
  async callerOf(request: RequestParts): Promise<Actor> {
    const { verifier, node } = this.#context
    const { authorization } = request.headers
    const address = this.addressOf(request)
    if (authorization !== undefined) {
      const [, credential] = /^bearer +(\S+)$/i.exec(authorization) ?? []
      if (credential === undefined) throw unauthenticated('the header Authorization is not Bearer <key or token>')
      if (this.#isApiKey(credential)) return operatorAt(address)
      if (verifier === undefined) throw unauthenticated('this is no API key of this server')
      const identity = await verifier.verify(credential).catch((error: unknown) => {
        if (this.#keys.length === 0 || hasPartsOfToken(credential)) throw error
        throw new WebMQError('E_TOKEN_INVALID', { detail: 'neither an API key of this server nor a signed JWT' })
      })
      if (node()?.revocations.covers(identity) === true) throw new WebMQError('E_TOKEN_REVOKED')
      return clientOverHttp(identity, address)
    }
    if (verifier !== undefined) throw unauthenticated('send Authorization: Bearer <key or token>')
    if (this.#isForThisMachineOnly && !this.isLocal(request)) {
      throw new WebMQError('E_INSECURE', { detail: 'without a key, only clients of this machine may ask' })
    }
    return clientOverHttp(ANONYMOUS, address)
  }

  /** Takes the same time for every key, right or wrong. */
  #isApiKey(credential: string): boolean {
    const keys = this.#context.options.apiKeys
    if (keys !== this.#keys) [this.#keys, this.#digests] = [keys, keys.map(digestOf)]
    const digest = digestOf(credential)
    let isKnown = false
    for (const known of this.#digests) isKnown = timingSafeEqual(digest, known) || isKnown
    return isKnown
  }
}

/** Repeated headers as one. */
function headerOf(headers: IncomingMessage['headers']): (name: string) => string | undefined {
  return (name) => [headers[name]].flat().join(', ') || undefined
}

/** Whether it looks like a JWT. */
function hasPartsOfToken(credential: string): boolean {
  return credential.split('.').length === 3
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

function unauthenticated(detail: string): WebMQError {
  return new WebMQError('E_UNAUTHENTICATED', { detail })
}
