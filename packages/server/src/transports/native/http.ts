import type { Server } from 'node:http'
import { Socket } from 'node:net'

/** Sockets of plain HTTP requests on the engine's port. */
export class NativeHttp {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(server: Server) {
    this.#server = server
  }

  /**
   * Hands a connection to the HTTP server, which serves it from the first byte, with keep-alive and bodies.
   * @param fd Owned by this object from now on.
   * @param read The bytes that the engine has read; copied.
   */
  serve(fd: number, read: Uint8Array): void {
    const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true })
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#server.emit('connection', socket)
    // After the server has attached its listeners, before the event loop reads more.
    if (!socket.destroyed) socket.unshift(Buffer.from(read))
  }

  /** Ends all connections; pending answers are cut off. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
