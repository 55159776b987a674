import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import { WebMQError } from 'webmq-client/protocol'
import type { TlsCertificate, TransportAddress, TransportOptions } from '../../ports/transport.js'
import { connectionLimit } from '../connection-limit.js'
import { rejectionOf } from '../upgrade/rejection.js'
import { type TakeUpgrade, takeUpgrades } from '../upgrade/take-upgrades.js'
import { ProxiedConnections } from './proxied.js'
import { refuse } from './refuse.js'
import { readRequestHead } from './request-head.js'
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
  'maxHeaderBytes' | 'handshakeTimeoutMs' | 'tls' | 'httpServer' | 'proxyProtocolFrom'
>

/** Events of {@link WsListener}. */
export interface WsListenerEvents {
  readonly upgrade: TakeUpgrade
  /** An invalid request for a WebSocket; without an `httpServer`, any other request too. */
  readonly request: RequestListener
  failed(error: Error): void
}

/**
 * The transport's own port. It reads the head of the first request of each connection. A connection that asks for a
 * WebSocket goes to a Node `http` server of its own; any other one goes to `httpServer`, from the first byte on.
 */
export class WsListener {
  readonly #options: ListenerOptions
  readonly #events: WsListenerEvents
  readonly #certificates: WsCertificates | undefined
  readonly #server: Server
  /** Listens by itself, unless headers of the PROXY protocol come before TLS. */
  readonly #tlsServer: TlsServer | undefined
  readonly #proxied: ProxiedConnections | undefined
  readonly #webSockets: HttpServer
  /** Connections of `httpServer`; over TLS all. */
  readonly #sockets = new Set<Socket>()
  /** Connections whose head is not complete, the oldest first. */
  readonly #heads = new Set<Socket>()
  readonly #maxHeads = Math.min(MAX_HEADS, connectionLimit(0) * MAX_SHARE_OF_DESCRIPTORS)

  /** @throws {WebMQError} `E_OPTION_INVALID` when a certificate does not work. */
  constructor(options: ListenerOptions, events: WsListenerEvents) {
    const { tls, handshakeTimeoutMs, maxHeaderBytes, proxyProtocolFrom = [] } = options
    this.#options = options
    this.#events = events
    this.#webSockets = createHttpServer({ maxHeaderSize: maxHeaderBytes + NODE_HEADER_MARGIN_BYTES }, events.request)
    // Ends connections that are neither upgraded nor answered, such as those that begin with empty lines.
    this.#webSockets.timeout = handshakeTimeoutMs
    takeUpgrades(this.#webSockets, undefined, events.upgrade)
    const connection = { allowHalfOpen: true, noDelay: true }
    if (tls !== undefined) {
      this.#certificates = new WsCertificates(tls)
      const secure = { ...connection, ...this.#certificates.serverOptions, handshakeTimeout: handshakeTimeoutMs }
      this.#tlsServer = createTlsServer(secure, (socket) => {
        this.#proxied?.describe(socket)
        this.#open(socket)
      })
      this.#tlsServer.on('connection', (socket: Socket) => this.#track(socket))
      // Node leaves them open.
      this.#tlsServer.on('tlsClientError', (_error, socket) => socket.destroy())
    }
    if (proxyProtocolFrom.length > 0) {
      const { failed } = events
      this.#proxied = new ProxiedConnections({ from: proxyProtocolFrom, timeoutMs: handshakeTimeoutMs, failed })
      this.#server = createServer(connection, (socket) => this.#receive(socket, this.#proxied))
    } else this.#server = this.#tlsServer ?? createServer(connection, (socket) => this.#open(socket))
  }

  /** Connections that were closed because they did not begin with a valid PROXY header. */
  get proxyHeaderRefusedCount(): number {
    return this.#proxied?.refusedCount ?? 0
  }

  /** @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`, `E_OPTION_INVALID`. */
  async listen(host: string, port: number): Promise<TransportAddress> {
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `port ${port} is not between 0 and 65535` })
    }
    const server = this.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) => {
        const code = cause.code === 'EADDRINUSE' ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE'
        reject(new WebMQError(code, { detail: `${host}:${port}`, cause }))
      })
      server.listen({ host, port }, resolve)
    })
    server.removeAllListeners('error')
    server.on('error', (error) => this.#events.failed(error))
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

  /** Closes the port. Connections go on. */
  close(): void {
    if (this.#server.listening) this.#server.close()
  }

  /** Ends all connections that are no WebSockets. */
  destroyConnections(): void {
    for (const socket of [...this.#heads, ...this.#sockets]) socket.destroy()
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** A connection that may begin with a header of the PROXY protocol. */
  #receive(socket: Socket, proxied: ProxiedConnections | undefined): void {
    this.#addHead(socket)
    socket.once('close', () => this.#heads.delete(socket))
    proxied?.receive(socket, (read) => {
      this.#heads.delete(socket)
      if (this.#tlsServer === undefined) {
        this.#open(socket)
        // After the listeners are attached, before the event loop reads more.
        if (read !== undefined && read.length > 0) socket.unshift(read)
        return
      }
      // TLS begins with what is buffered then; nobody else takes it.
      socket.pause()
      if (read !== undefined && read.length > 0) socket.unshift(read)
      this.#tlsServer.emit('connection', socket)
    })
  }

  #addHead(socket: Socket): void {
    if (this.#heads.size >= this.#maxHeads) {
      const [oldest] = this.#heads
      oldest?.destroy()
    }
    this.#heads.add(socket)
  }

  #open(socket: Socket): void {
    this.#addHead(socket)
    const { maxHeaderBytes, handshakeTimeoutMs, httpServer = this.#webSockets } = this.#options
    readRequestHead(socket, { maxHeaderBytes, timeoutMs: handshakeTimeoutMs }, (head) => {
      this.#heads.delete(socket)
      if (head === 'closed') return
      if (head === 'too large') return refuse(socket, rejectionOf('E_HEADERS_TOO_LARGE'))
      const asksForWebSocket = ASKS_FOR_WEBSOCKET.test(head.toString('latin1', 0, maxHeaderBytes))
      if (!asksForWebSocket) this.#track(socket)
      const server = asksForWebSocket ? this.#webSockets : httpServer
      server.emit('connection', socket)
      // After the server has attached its listeners, before the event loop reads more.
      if (!socket.destroyed) socket.unshift(head)
    })
  }
}
