import type { IncomingMessage, Server } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

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

/** A request as its client sent it, up to the empty line. Node has checked that no header has a line end in it. */
export function requestHead({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let index = 0; index < rawHeaders.length; index += 2)
    head += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`
  return Buffer.from(`${head}\r\n`, 'latin1')
}

/** Descriptor of a TCP connection of Node; `undefined` when it has none, or when what it carries is encrypted. */
export function descriptorOf(socket: Duplex): number | undefined {
  if ('encrypted' in socket && socket.encrypted === true) return undefined
  if (!('_handle' in socket)) return undefined
  const handle: unknown = socket._handle
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return undefined
  const { fd } = handle
  return typeof fd === 'number' && fd >= 0 ? fd : undefined
}
