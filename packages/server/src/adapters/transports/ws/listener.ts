import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import { WebMQError } from 'webmq-client/protocol'
import type { TransportAddress } from '../../../kernel/ports/transport.js'
import type { TlsCertificate, TransportOptions } from '../../../kernel/ports/transport-options.js'
import { UNIX_PEER, unixPathOf } from '../../../kernel/ports/unix-socket.js'
import { bindError } from '../addresses.js'
import { connectionLimit } from '../connection-limit.js'
import { refuse, rejectionOf } from '../upgrade/rejection.js'
import { type TakeUpgrade, takeUpgrades } from '../upgrade/take-upgrades.js'
import { WsCertificates } from './tls.js'

/** What the head of a WebSocket request has; the key reveals proxies that remove `Upgrade`. */
const ASKS_FOR_WEBSOCKET = /\r\n(?:upgrade[ \t]*:[^\r\n]*\bwebsocket\b|sec-websocket-key[ \t]*:)/i
/** Node counts the bytes of a head in its own way, so its limit is a little wider than ours. */
const NODE_HEADER_MARGIN_BYTES = 4_096

/** Connections whose head is not complete. Then the oldest gives way to a newcomer, so nobody can take all descriptors. */
const MAX_HEADS = 10_000
const MAX_SHARE_OF_DESCRIPTORS = 1 / 2

type ListenerOptions = Pick<
  TransportOptions,
  'maxHeaderBytes' | 'handshakeTimeoutMs' | 'tls' | 'httpServer' | 'ssePath'
>

export interface WsListenerEvents {
  readonly upgrade: TakeUpgrade
  /** A `GET` of `ssePath`. */
  readonly stream: RequestListener
  /** An invalid request for a WebSocket; without an `httpServer`, any other request too. */
  readonly request: RequestListener
  failed(error: Error): void
}

/**
 * The transport's own port. It reads the head of the first request of each connection. A connection that asks for a
 * WebSocket or an event stream goes to a Node `http` server of its own; any other one goes to `httpServer`, from the first
 * byte on.
 */
export class WsListener {
  readonly #options: ListenerOptions
  readonly #events: WsListenerEvents
  readonly #certificates: WsCertificates | undefined
  readonly #server: Server
  readonly #tlsServer: TlsServer | undefined
  readonly #webSockets: HttpServer
  /** Connections of `httpServer`; over TLS all. */
  readonly #sockets = new Set<Socket>()
  /** Connections whose head is not complete, the oldest first; over TLS, also those whose handshake is not. */
  readonly #heads = new Set<Socket>()
  /** Of these, those whose TLS handshake is not complete, by their peer: Node gives another socket for each then. */
  readonly #handshakes = new Map<string, Socket>()
  #isUnix = false
  readonly #maxHeads = Math.min(MAX_HEADS, connectionLimit(0) * MAX_SHARE_OF_DESCRIPTORS)

  /** @throws {WebMQError} `E_OPTION_INVALID` when a certificate does not work. */
  constructor(options: ListenerOptions, events: WsListenerEvents) {
    const { tls, handshakeTimeoutMs, maxHeaderBytes } = options
    this.#options = options
    this.#events = events
    const onRequest: RequestListener = (request, response) => {
      const isStream = this.#asksForStream(request.method, request.url)
      if (isStream) events.stream(request, response)
      else events.request(request, response)
    }
    this.#webSockets = createHttpServer({ maxHeaderSize: maxHeaderBytes + NODE_HEADER_MARGIN_BYTES }, onRequest)
    // Ends connections that are neither upgraded nor answered, such as those that begin with empty lines.
    this.#webSockets.timeout = handshakeTimeoutMs
    takeUpgrades(this.#webSockets, undefined, events.upgrade)
    const connection = { allowHalfOpen: true, noDelay: true }
    if (tls !== undefined) {
      this.#certificates = new WsCertificates(tls)
      const secure = { ...connection, ...this.#certificates.serverOptions, handshakeTimeout: handshakeTimeoutMs }
      this.#tlsServer = createTlsServer(secure, (socket) => this.#open(socket))
      this.#tlsServer.on('connection', (socket: Socket) => {
        this.#track(socket)
        this.#shake(socket)
      })
      // Node leaves them open.
      this.#tlsServer.on('tlsClientError', (_error, socket) => socket.destroy())
    }
    this.#server = this.#tlsServer ?? createServer(connection, (socket) => this.#open(socket))
  }

  /** @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`. */
  async listen(host: string, port: number): Promise<TransportAddress> {
    const server = this.#server
    const path = unixPathOf(host)
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => reject(bindError(host, port, cause)))
      server.listen(path === undefined ? { host, port } : { path }, resolve)
    })
    server.removeAllListeners('error')
    server.on('error', (error) => this.#events.failed(error))
    this.#isUnix = path !== undefined
    if (path !== undefined) return { host, port: 0 }
    const { address, port: boundPort } = server.address() as AddressInfo
    return { host: address, port: boundPort }
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the old ones stay. */
  setCertificates(certificates: readonly TlsCertificate[]): void {
    if (this.#certificates === undefined || this.#tlsServer === undefined) {
      throw new WebMQError('E_OPTION_INVALID', { detail: 'tls: the transport was started without it' })
    }
    this.#certificates.replace(certificates, this.#tlsServer)
  }

  close(): void {
    if (this.#server.listening) this.#server.close()
  }

  /** Ends all connections that are no WebSockets. */
  destroyConnections(): void {
    for (const socket of [...this.#heads, ...this.#sockets]) socket.destroy()
  }

  #asksForStream(method: string | undefined, url = ''): boolean {
    const { ssePath } = this.#options
    return ssePath !== undefined && method === 'GET' && pathOf(url) === ssePath
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** Those of a Unix socket have no peer to tell them apart by, and are of this machine. */
  #shake(socket: Socket): void {
    const peer = peerOf(socket)
    if (peer === undefined) return
    this.#admit(socket)
    this.#handshakes.set(peer, socket)
    socket.once('close', () => this.#shaken(peer, socket))
  }

  #shaken(peer: string, socket = this.#handshakes.get(peer)): void {
    if (socket === undefined) return
    this.#heads.delete(socket)
    if (this.#handshakes.get(peer) === socket) this.#handshakes.delete(peer)
  }

  /** The oldest gives way, where there are too many. */
  #admit(socket: Socket): void {
    if (this.#heads.size >= this.#maxHeads) {
      const [oldest] = this.#heads
      oldest?.destroy()
    }
    this.#heads.add(socket)
  }

  #open(socket: Socket): void {
    const peer = this.#handshakes.size > 0 ? peerOf(socket) : undefined
    if (peer !== undefined) this.#shaken(peer)
    if (this.#isUnix) Object.defineProperty(socket, 'remoteAddress', { value: UNIX_PEER })
    this.#admit(socket)
    const { maxHeaderBytes, handshakeTimeoutMs, httpServer = this.#webSockets } = this.#options
    readRequestHead(socket, { maxHeaderBytes, timeoutMs: handshakeTimeoutMs }, (head) => {
      this.#heads.delete(socket)
      if (head === 'closed') return
      if (head === 'too large') return refuse(socket, rejectionOf('E_HEADERS_TOO_LARGE'))
      const text = head.toString('latin1', 0, head.indexOf(HEAD_END))
      const asksForWebSocket = ASKS_FOR_WEBSOCKET.test(text)
      const [method, target] = text.split(' ', 2)
      const isOurs = asksForWebSocket || this.#asksForStream(method, target)
      if (!asksForWebSocket) this.#track(socket)
      const server = isOurs ? this.#webSockets : httpServer
      server.emit('connection', socket)
      // After the server has attached its listeners, before the event loop reads more.
      if (!socket.destroyed) socket.unshift(head)
    })
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort}`
}

/** Path of a request target, which may be in absolute form (RFC 9112 §3.2.2). */
function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1)
  return path.replace(/^https?:\/\/[^/]*/i, '')
}

const HEAD_END = '\r\n\r\n'

/**
 * Reads from a new connection until its first request head is complete. A connection that takes too long is destroyed.
 * @param done Gets all bytes that were read, once. Whoever takes the connection MUST do so within the call.
 */
function readRequestHead(
  socket: Socket,
  { maxHeaderBytes, timeoutMs }: { readonly maxHeaderBytes: number; readonly timeoutMs: number },
  done: (read: Buffer | 'too large' | 'closed') => void,
): void {
  let read: Buffer | undefined
  const onData = (chunk: Buffer) => {
    const searchFrom = Math.max(0, (read?.length ?? 0) - HEAD_END.length + 1)
    read = read === undefined ? chunk : Buffer.concat([read, chunk])
    const end = read.indexOf(HEAD_END, searchFrom, 'latin1')
    if ((end < 0 ? read.length : end + HEAD_END.length) > maxHeaderBytes) finish('too large')
    else if (end >= 0) finish(read)
  }
  const onEnd = () => socket.destroy()
  const onClose = () => finish('closed')
  const onError = () => socket.destroy()
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  const finish = (result: Buffer | 'too large' | 'closed') => {
    clearTimeout(timer)
    socket.off('data', onData).off('end', onEnd).off('close', onClose)
    done(result)
    socket.off('error', onError)
  }
  socket.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onError)
}
