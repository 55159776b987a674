import {
  type ClientMessage,
  decodeServerMessage,
  encodeClientMessage,
  type ServerMessage,
  type WirePayload,
} from 'webmq-client/protocol'
import type { Rejection } from 'webmq-server/ports'

/** The transport's side of a {@link FakeClient}. */
export interface FakeClientLink {
  receive(data: Uint8Array, isBinary: boolean): void
  drop(code: number, reason: string): void
  readOn(): void
}

/** How the server closed a connection. */
export interface FakeClosure {
  readonly code: number
  readonly reason: string
}

/** The other end of a connection of a {@link FakeTransport}. */
export class FakeClient {
  readonly #link: FakeClientLink
  readonly #messages: ServerMessage[] = []
  /** All received messages, unparsed. */
  readonly frames: { readonly data: WirePayload; readonly isBinary: boolean }[] = []
  /** Subprotocol that the server chose. */
  subprotocol: string | undefined
  /** Set when the server refused the upgrade. */
  rejection: Rejection | undefined
  /** Set when the server closed the connection. */
  closure: FakeClosure | undefined
  isOpen = false
  /** Is told of each message, unparsed, instead of {@link frames}. */
  onFrame: ((data: WirePayload, isBinary: boolean) => void) | undefined
  /** Is told that the server has closed the connection, or refused it. */
  onClosed: ((code: number) => void) | undefined
  #isReading = true

  constructor(link: FakeClientLink) {
    this.#link = link
  }

  /** All received messages, parsed. */
  get messages(): ServerMessage[] {
    return [...this.#messages]
  }

  /** Receives a message of the server. */
  take(data: WirePayload, isBinary: boolean): void {
    if (this.onFrame !== undefined) {
      this.onFrame(data, isBinary)
      return
    }
    this.frames.push({ data, isBinary })
    this.#messages.push(decodeServerMessage(data))
  }

  /** Received messages of one verb. */
  received<V extends ServerMessage['verb']>(verb: V): Extract<ServerMessage, { verb: V }>[] {
    return this.messages.filter((message): message is Extract<ServerMessage, { verb: V }> => message.verb === verb)
  }

  /** Whether what the server sends leaves its outbox. It is recorded in any case. */
  get isReading(): boolean {
    return this.#isReading
  }

  stopReading(): void {
    this.#isReading = false
  }

  readOn(): void {
    this.#isReading = true
    this.#link.readOn()
  }

  /** Forgets the received messages. */
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
