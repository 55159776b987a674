import { WebMQError } from 'webmq-client/protocol'
import { copyBytes } from '../base/copy-bytes.js'
import type { Actor } from '../identity/actor.js'
import type { Claims } from '../identity/index.js'
import type { InboundMessage } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'
import { type EncodedPayload, keyIn, payloadIn, readAnswer } from './answers.js'
import type { DeliverRequest, HookClient, HookMessage, PublishRequest } from './hooks.js'

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

export function parsed(text: string): unknown {
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

export interface PublishChange {
  readonly key: string
  /** `undefined`: the payload is as it was. */
  readonly content: EncodedPayload | undefined
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
