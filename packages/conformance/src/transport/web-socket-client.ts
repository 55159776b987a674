import { once } from 'node:events'
import { type ClientOptions, type RawData, WebSocket } from 'ws'

/** A message as the `ws` package gives it: text as a string, bytes as a Buffer. */
export type ClientMessage = string | Buffer

/** A client that behaves as browsers do. */
export class WebSocketClient {
  readonly socket: WebSocket
  readonly messages: ClientMessage[] = []
  /** Settles when the connection is gone. */
  readonly closed: Promise<{ code: number; reason: string }>

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: RawData, isBinary: boolean) => {
      const bytes = data as Buffer
      this.messages.push(isBinary ? bytes : bytes.toString())
    })
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  /** Connects; rejects with the error of `ws` when the upgrade is refused. */
  static async open(url: string, options: ClientOptions & { subprotocols?: string[] } = {}): Promise<WebSocketClient> {
    const { subprotocols = [], ...rest } = options
    const client = new WebSocketClient(new WebSocket(url, subprotocols, { perMessageDeflate: false, ...rest }))
    await once(client.socket, 'open')
    // From here on `closed` reports a broken connection.
    client.socket.on('error', () => client.socket.terminate())
    return client
  }

  get texts(): string[] {
    return this.messages.map((message) => message.toString())
  }

  send(message: ClientMessage | Uint8Array): void {
    this.socket.send(message)
  }

  close(code?: number, reason?: string): void {
    this.socket.close(code, reason)
  }

  destroy(): void {
    this.socket.terminate()
  }
}
