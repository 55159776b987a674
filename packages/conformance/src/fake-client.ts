import {
  type ClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  PositionBase,
  type ServerMessage,
  type WirePayload,
} from 'webmq-client/protocol'
import type { Rejection } from 'webmq-server/ports'
import { completeMessage } from './complete-message.js'

/** What a {@link FakeClient} is driven by. */
export interface FakeClientLink {
  receive(data: Uint8Array, isBinary: boolean): void
  drop(code: number, reason: string): void
}

/** How a connection was closed by the server. */
export interface FakeClosure {
  readonly code: number
  readonly reason: string
}

/** The other end of a connection of a {@link FakeTransport}. */
export class FakeClient {
  readonly #link: FakeClientLink
  readonly #positions = new PositionBase()
  readonly #messages: ServerMessage[] = []
  /** Everything that was received, as it came. */
  readonly frames: { readonly data: WirePayload; readonly isBinary: boolean }[] = []
  /** Subprotocol that the server has chosen. */
  subprotocol: string | undefined
  /** Set when the upgrade was refused. */
  rejection: Rejection | undefined
  /** Set when the server has closed the connection. */
  closure: FakeClosure | undefined
  isOpen = false

  constructor(link: FakeClientLink) {
    this.#link = link
  }

  /** Everything that was received, understood; positions are full, as applications see them. */
  get messages(): ServerMessage[] {
    return [...this.#messages]
  }

  /** Takes what the server sends. */
  take(data: WirePayload, isBinary: boolean): void {
    this.frames.push({ data, isBinary })
    this.#messages.push(completeMessage(decodeServerMessage(data), this.#positions))
  }

  /** What was received of one verb. */
  received<V extends ServerMessage['verb']>(verb: V): Extract<ServerMessage, { verb: V }>[] {
    return this.messages.filter((message): message is Extract<ServerMessage, { verb: V }> => message.verb === verb)
  }

  /** Forgets what was received. */
  clear(): void {
    this.frames.length = 0
    this.#messages.length = 0
  }

  /** Sends one protocol message. */
  send(message: ClientMessage): void {
    const data = encodeClientMessage(message)
    this.sendRaw(data)
  }

  /** Sends one WebSocket message: text when it is a string. */
  sendRaw(data: WirePayload): void {
    const isBinary = typeof data !== 'string'
    this.#link.receive(isBinary ? data.slice() : new TextEncoder().encode(data), isBinary)
  }

  /** The connection is lost, or closed from this side. */
  drop(code = 1006, reason = ''): void {
    this.#link.drop(code, reason)
  }
}
