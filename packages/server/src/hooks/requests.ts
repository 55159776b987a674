import type { Actor } from '../identity/actor.js'
import type { Claims, Identity } from '../identity/index.js'
import type { WordLimits } from '../ports/word-limits.js'
import { identityIn, jsonIn, readAnswer } from './answers.js'
import type { ConnectRequest, PresenceRequest } from './hooks.js'
import { Asked, parsed } from './message-requests.js'

export interface ConnectFacts {
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
}

/** For a renewal: the head of the upgrade request is not kept. */
const NO_FACTS: ConnectFacts = { path: '', query: '', headers: Object.freeze({}) }

export class AskedConnect extends Asked implements ConnectRequest {
  readonly path: string
  readonly query: string
  readonly headers: Readonly<Record<string, string>>
  readonly #limits: WordLimits
  readonly #nowMs: number
  #identity: Identity
  readonly isRenewal: boolean

  /** @param facts Absent for a renewal. */
  constructor(caller: Actor, identity: Identity, facts: ConnectFacts | undefined, limits: WordLimits, nowMs: number) {
    super(caller)
    this.#identity = identity
    const { path, query, headers } = facts ?? NO_FACTS
    this.path = path
    this.query = query
    this.headers = headers
    this.#limits = limits
    this.#nowMs = nowMs
    this.isRenewal = facts === undefined
  }

  /** Of the token, or of an earlier hook: the session has no identity yet. */
  override get user(): string | undefined {
    return this.#identity.userId
  }

  override get claims(): Claims | undefined {
    return this.#identity.claims
  }

  static take(request: AskedConnect, answer: unknown): void {
    const members = readAnswer(answer, ['user', 'grants', 'expiresInMs'])
    if (members !== undefined) {
      request.#identity = identityIn(members, request.#identity, request.#nowMs, request.#limits)
    }
  }

  static identityOf(request: AskedConnect): Identity {
    return request.#identity
  }
}

export class AskedPresence extends Asked implements PresenceRequest {
  readonly op: 'enter' | 'get' | 'watch'
  readonly key: string
  #data: string | undefined
  #isChanged = false

  constructor(caller: Actor, op: 'enter' | 'get' | 'watch', key: string, data: string | undefined) {
    super(caller)
    this.op = op
    this.key = key
    this.#data = data
  }

  get dataText(): string | undefined {
    return this.#data
  }

  readonly data = (): unknown => (this.#data === undefined ? undefined : parsed(this.#data))

  static take(request: AskedPresence, answer: unknown): void {
    const data = readAnswer(answer, ['data'])?.data
    if (data === undefined || request.op !== 'enter') return
    request.#data = jsonIn(data, 'data')
    request.#isChanged = true
  }

  /** JSON text of the member's data, if a hook has changed it. */
  static changeOf(request: AskedPresence): string | undefined {
    return request.#isChanged ? request.#data : undefined
  }
}
