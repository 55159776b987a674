import { WebMQError } from 'webmq-client/protocol'
import type {
  ConnectRequest,
  DeliverRequest,
  HookClient,
  HookMessage,
  PresenceRequest,
  PublishRequest,
} from '../../doors/options/hooks.js'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import type { Actor, ConnectFacts } from '../../kernel/identity/actor.js'
import type { PublishChange } from '../../kernel/identity/hook-port.js'
import type { Claims, Identity } from '../../kernel/identity/index.js'
import type { InboundMessage } from '../../kernel/ports/broker.js'
import { formatPosition } from '../../kernel/ports/position.js'
import type { WordLimits } from '../../kernel/ports/word-limits.js'
import { type EncodedPayload, identityIn, jsonIn, keyIn, payloadIn, readAnswer } from './answers.js'

/**
 * The client, as functions of the application see it. Classes that extend it keep in private fields the values that the server
 * reads back. A static method gives them away, so that no function can reach them.
 */
export class Asked implements HookClient {
  readonly #caller: Actor

  constructor(caller: Actor) {
    this.#caller = caller
  }

  get session(): string {
    return this.#caller.id
  }

  get user(): string | undefined {
    return this.#caller.userId
  }

  get claims(): Claims | undefined {
    return this.#caller.claims
  }

  get address(): string {
    return this.#caller.address
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'it is not JSON', cause })
  }
}

/** The payload of a message that may be overwritten once the server has gone on. */
class Borrowed {
  #bytes: Uint8Array
  #isOwn = false
  isBinary: boolean
  /** What a hook has put in its place. */
  change: EncodedPayload | undefined

  constructor(bytes: Uint8Array, isBinary: boolean) {
    this.#bytes = bytes
    this.isBinary = isBinary
  }

  /** The application may keep them, and change them. */
  get own(): Uint8Array {
    this.keep()
    return this.#bytes
  }

  /** The bytes outlive the call that has brought them. */
  keep(): void {
    if (this.#isOwn) return
    this.#bytes = copyBytes(this.#bytes)
    this.#isOwn = true
  }

  /** @param answer `undefined`: it stays. */
  replace(answer: unknown): void {
    if (answer === undefined) return
    this.change = payloadIn(answer)
    this.#bytes = this.change.payload
    this.#isOwn = true
    this.isBinary = this.change.isBinary
  }

  json(): unknown {
    return parsed(decoder.decode(this.#bytes))
  }
}

export class AskedPublish extends Asked implements PublishRequest, HookMessage {
  readonly isEphemeral: boolean
  #key: string
  readonly #message: Borrowed
  #hasOtherKey = false

  /** @param payload Borrowed until {@link AskedPublish.keep}. */
  constructor(caller: Actor, key: string, payload: Uint8Array, isBinary: boolean, isEphemeral: boolean) {
    super(caller)
    this.#key = key
    this.isEphemeral = isEphemeral
    this.#message = new Borrowed(payload, isBinary)
  }

  get key(): string {
    return this.#key
  }

  get isBinary(): boolean {
    return this.#message.isBinary
  }

  get payload(): Uint8Array {
    return this.#message.own
  }

  /** A function of its own, so that a hook may take the request apart. */
  readonly json = (): unknown => this.#message.json()

  static take(request: AskedPublish, answer: unknown): void {
    const members = readAnswer(answer, ['key', 'payload'])
    if (members === undefined) return
    if (members.key !== undefined) {
      request.#key = keyIn(members.key)
      request.#hasOtherKey = true
    }
    request.#message.replace(members.payload)
  }

  static keep(request: AskedPublish): void {
    request.#message.keep()
  }

  /** `undefined` when the message is as it was. */
  static changeOf(request: AskedPublish): PublishChange | undefined {
    const content = request.#message.change
    return request.#hasOtherKey || content !== undefined ? { key: request.#key, content } : undefined
  }
}

export class AskedDeliver implements DeliverRequest {
  readonly #message: InboundMessage
  readonly #payload: Borrowed
  #isDropped = false

  constructor(message: InboundMessage) {
    this.#message = message
    this.#payload = new Borrowed(message.payload, message.isBinary)
  }

  get key(): string {
    return this.#message.key
  }

  get isBinary(): boolean {
    return this.#payload.isBinary
  }

  get payload(): Uint8Array {
    return this.#payload.own
  }

  get position(): string | undefined {
    const { position } = this.#message
    return position && formatPosition(position)
  }

  readonly json = (): unknown => this.#payload.json()

  static take(request: AskedDeliver, answer: unknown): void {
    const members = readAnswer(answer, ['drop', 'payload'])
    if (members === undefined) return
    if (members.drop === true) request.#isDropped = true
    request.#payload.replace(members.payload)
  }

  /** The message to deliver; `undefined` for none. */
  static outcomeOf(request: AskedDeliver): InboundMessage | undefined {
    if (request.#isDropped) return undefined
    const { change } = request.#payload
    return change === undefined ? request.#message : { ...request.#message, ...change }
  }
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
