import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type { Revocations } from '../cluster/index.js'
import type { HookCaller, HookCalls } from '../hooks/index.js'
import { ANONYMOUS, type Identity, type TokenVerifier, UNIDENTIFIED } from '../identity/index.js'
import { isLocalRequest } from './local-request.js'

/** Who sends an HTTP request: somebody with an API key, who may do everything, or a client with its grants. */
export type Caller = { readonly kind: 'operator' } | ClientCaller

/** A client with its grants. */
export interface ClientCaller {
  readonly kind: 'client'
  readonly identity: Identity
  /** IP address; empty when it is not known. */
  readonly address: string
}

/** A client as hooks see it. A request has no session. */
export function hookCallerOf({ identity: { userId, claims }, address }: ClientCaller): HookCaller {
  return { id: '', userId, claims, address }
}

/** What {@link Callers} works with. */
export interface CallersContext {
  readonly apiKeys: readonly string[]
  /** Absent when the server asks for no token. */
  readonly verifier: Pick<TokenVerifier, 'verify'> | undefined
  readonly revocations: () => Pick<Revocations, 'covers'> | undefined
  /** Whether a page of this origin may ask. */
  readonly isOriginAllowed: (origin: string | undefined, host: string | undefined) => boolean
  /** Whether anonymous clients must be on this machine. */
  readonly isForThisMachineOnly: boolean
  /** Absent without any hook. */
  readonly hooks: Pick<HookCalls, 'hasConnect' | 'connect'> | undefined
  /** Whether clients that no token and no hook identifies may do anything. */
  readonly insecure: boolean
}

const OPERATOR: Caller = { kind: 'operator' }

/** Finds out who sends an HTTP request. The rules are those of an upgrade, and API keys. */
export class Callers {
  readonly #context: CallersContext
  readonly #digests: readonly Buffer[]

  constructor(context: CallersContext) {
    this.#context = context
    this.#digests = context.apiKeys.map(digestOf)
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
   *   this machine; `E_TOKEN_REVOKED`; the errors of {@link TokenVerifier.verify} and of the hook `connect`.
   */
  async callerOf(request: Pick<IncomingMessage, 'headers' | 'socket' | 'url'>): Promise<Caller> {
    const { verifier, revocations, isForThisMachineOnly, hooks, insecure } = this.#context
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const [, credential] = /^bearer +(\S+)$/i.exec(authorization) ?? []
      if (credential === undefined) throw unauthenticated('the header Authorization is not Bearer <key or token>')
      if (this.#isApiKey(credential)) return OPERATOR
      if (verifier === undefined) throw unauthenticated('this is no API key of this server')
      const identity = await verifier.verify(credential)
      if (revocations()?.covers(identity) === true) throw new WebMQError('E_TOKEN_REVOKED')
      return await this.#clientOf(identity, request)
    }
    if (verifier !== undefined) throw unauthenticated('send Authorization: Bearer <key or token>')
    if (isForThisMachineOnly && !isLocalRequest(request)) {
      throw new WebMQError('E_INSECURE', { detail: 'without a key, only clients of this machine may ask' })
    }
    return await this.#clientOf(hooks?.hasConnect === true && !insecure ? UNIDENTIFIED : ANONYMOUS, request)
  }

  /** Asks the hook `connect` about each request, as about each connection. */
  async #clientOf(
    identity: Identity,
    { headers, socket, url = '/' }: Pick<IncomingMessage, 'headers' | 'socket' | 'url'>,
  ): Promise<ClientCaller> {
    const { hooks } = this.#context
    const client: ClientCaller = { kind: 'client', identity, address: socket.remoteAddress ?? '' }
    if (hooks?.hasConnect !== true) return client
    const [path = '/', query = ''] = url.split('?', 2)
    const texts: Record<string, string> = {}
    for (const [name, value] of Object.entries(headers))
      if (value !== undefined) texts[name] = [value].flat().join(', ')
    const facts = { path, query, headers: texts }
    return { ...client, identity: await hooks.connect(hookCallerOf(client), identity, facts) }
  }

  /** Takes the same time for every key, right or wrong. */
  #isApiKey(credential: string): boolean {
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
