import { once } from 'node:events'
import { vi } from 'vitest'
import { type ClientMessage, decodeServerMessage, encodeClientMessage, type ServerMessage } from 'webmq-client/protocol'
import { type ClientOptions, type RawData, WebSocket } from 'ws'

/** How a {@link ProtocolClient} connects. */
export interface ConnectOptions extends ClientOptions {
  /** Default `webmq.v1`. */
  readonly subprotocols?: readonly string[]
}

/** Speaks the protocol message by message, over a real socket. */
export class ProtocolClient {
  readonly socket: WebSocket
  /** Received messages. */
  readonly messages: ServerMessage[] = []
  closure: { readonly code: number; readonly reason: string } | undefined
  #nextId = 1

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: RawData, isBinary: boolean) => {
      const bytes = data as Buffer
      this.messages.push(decodeServerMessage(isBinary ? new Uint8Array(bytes) : bytes.toString()))
    })
    socket.on('close', (code, reason) => {
      this.closure = { code, reason: reason.toString() }
    })
  }

  /** Connects; resolves when the first message arrives. */
  static async open(
    url: string,
    { subprotocols = ['webmq.v1'], ...options }: ConnectOptions = {},
  ): Promise<ProtocolClient> {
    const client = new ProtocolClient(new WebSocket(url, [...subprotocols], { perMessageDeflate: false, ...options }))
    await once(client.socket, 'open')
    client.socket.on('error', () => client.socket.terminate())
    await client.until(() => client.messages.length > 0)
    return client
  }

  /** Status and body of a refused upgrade. */
  static refusal(url: string, { subprotocols = ['webmq.v1'], ...options }: ConnectOptions = {}) {
    return new Promise<{ status: number; json: unknown }>((resolve, reject) => {
      const socket = new WebSocket(url, [...subprotocols], options)
      socket.on('open', () => reject(new Error('it was not refused')))
      socket.on('unexpected-response', (_request, response) => {
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          body += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, json: JSON.parse(body) }))
      })
      socket.on('error', reject)
    })
  }

  /** Received messages of one verb. */
  received<V extends ServerMessage['verb']>(verb: V): Extract<ServerMessage, { verb: V }>[] {
    return this.messages.filter((message): message is Extract<ServerMessage, { verb: V }> => message.verb === verb)
  }

  /** Payloads of received messages; text payloads as strings. */
  get payloads(): (string | number[])[] {
    return this.received('message').map(({ payload }) => (typeof payload === 'string' ? payload : [...payload]))
  }

  send(message: ClientMessage): void {
    this.socket.send(encodeClientMessage(message))
  }

  /** Sends a request with a new id and resolves to the answer. */
  async request(build: (id: string) => ClientMessage): Promise<Extract<ServerMessage, { verb: 'ok' | 'error' }>> {
    const id = `r${this.#nextId++}`
    this.send(build(id))
    return this.answerTo(id)
  }

  /** Resolves to the answer with this id; `undefined` is the one without. */
  answerTo(id: string | undefined): Promise<Extract<ServerMessage, { verb: 'ok' | 'error' }>> {
    return vi.waitFor(
      () => {
        for (const message of this.messages) {
          if ((message.verb === 'ok' || message.verb === 'error') && message.id === id) return message
        }
        throw new Error(`no answer to ${id} among ${JSON.stringify(this.messages).slice(0, 500)}`)
      },
      { interval: 5 },
    )
  }

  /** Resolves when the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    await vi.waitFor(
      () => {
        if (!condition()) throw new Error(`still not, among ${JSON.stringify(this.messages).slice(-500)}`)
      },
      { interval: 5 },
    )
  }

  /** Resolves when the server has handled everything that was sent. */
  async settled(): Promise<void> {
    const pongCount = this.received('pong').length
    this.send({ verb: 'ping' })
    await this.until(() => this.received('pong').length > pongCount)
  }

  close(): void {
    this.socket.close()
  }
}
