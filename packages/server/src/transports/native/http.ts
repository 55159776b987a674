import type { Server } from 'node:http'
import { Socket } from 'node:net'

/** Sockets of plain HTTP requests that arrived on the engine's port. */
export class NativeHttp {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(server: Server) {
    this.#server = server
  }

  /**
   * Gives a connection to the HTTP server, which serves it from its first byte on, keep-alive and bodies included.
   * @param fd Owned from now on.
   * @param read What the engine has read of the request; copied.
   */
  serve(fd: number, read: Uint8Array): void {
    const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true })
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#server.emit('connection', socket)
    // After the server has its listeners on the socket, before the event loop reads more from it.
    socket.unshift(Buffer.from(read))
  }

  /** Ends the connections: what is being answered is cut. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
