import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { ERRORS } from 'webmq-client/protocol'
import { type ServerOptions, WebSocketServer } from 'ws'
import type { AcceptOptions, ConnectionId, OutboxLevel, UpgradeId } from '../../../kernel/ports/transport.js'
import type { TransportOptions } from '../../../kernel/ports/transport-options.js'
import type { Droppable } from '../backlog.js'
import type { Connections } from '../connections.js'
import { Keepalive } from '../keepalive.js'
import type { SinkCalls } from '../sink-calls.js'
import { WsConnection } from './connection.js'
import type { WsFrame } from './frame.js'
import { WsOutbox } from './outbox.js'
import { WsReading } from './reading.js'

const OPEN = 1

/** Why the transport itself closes a connection. */
type OwnReason = 'E_SLOW_CONSUMER' | 'E_HEARTBEAT_TIMEOUT' | 'E_MESSAGE_TIMEOUT' | 'E_INTERNAL'

/** An upgrade request, and what to answer it with. */
export interface UpgradeSocket {
  readonly request: IncomingMessage
  readonly socket: Socket
  readonly rest: Buffer
}

/** Connections of the transport, WebSockets among them. */
type SocketConnections = Pick<
  Connections<WsConnection>,
  'add' | 'remove' | 'forget' | 'acceptedCount' | 'closedCount' | 'slowConsumerCount'
>

/** The WebSockets among the connections of the transport: from the accepted upgrade to the end. */
export class WebSockets {
  readonly #connections: SocketConnections
  readonly #calls: () => SinkCalls | undefined
  /** Those that the sink knows. */
  readonly #websockets = new Set<WsConnection>()
  readonly #server: WebSocketServer
  readonly #outbox: WsOutbox
  readonly #compressFromBytes: number
  readonly #keepalive: Keepalive<WsConnection>
  readonly #reading: WsReading
  /** How the upgrade that `ws` answers right now is accepted. */
  #accepting: AcceptOptions = {}

  constructor(options: TransportOptions, connections: SocketConnections, calls: () => SinkCalls | undefined) {
    this.#connections = connections
    this.#calls = calls
    this.#server = this.#createServer(options)
    this.#compressFromBytes = options.compression?.thresholdBytes ?? Number.POSITIVE_INFINITY
    this.#outbox = new WsOutbox(options.maxOutboxBytes, {
      overflow: (connection) => {
        connections.slowConsumerCount++
        this.drop(connection, 'E_SLOW_CONSUMER')
      },
      drained: (connection) => calls()?.drained(connection.id),
      progress: (connection) => this.#keepalive.restart(connection),
    })
    this.#keepalive = new Keepalive(options, this.#websockets, {
      ping: ({ websocket }) => websocket.ping(),
      silent: (connection) => this.drop(connection, 'E_HEARTBEAT_TIMEOUT'),
    })
    this.#reading = new WsReading(options.messageTimeoutMs, this.#websockets, (connection) =>
      this.drop(connection, 'E_MESSAGE_TIMEOUT'),
    )
  }

  start(): void {
    this.#keepalive.start()
    this.#reading.start()
  }

  stop(): void {
    this.#keepalive.stop()
    this.#reading.stop()
  }

  outboxStats() {
    return this.#outbox.stats()
  }

  accept(upgrade: UpgradeId, { request, socket, rest }: UpgradeSocket, options: AcceptOptions): void {
    const id = ++this.#connections.acceptedCount as ConnectionId
    // Before `ws` reads the socket: the first data comes in a later tick.
    this.#calls()?.open(id, upgrade)
    this.#accepting = options
    let isOpen = false
    try {
      this.#server.handleUpgrade(request, socket, rest, (websocket) => {
        isOpen = true
        this.#listen(new WsConnection(this, id, upgrade, websocket, socket))
      })
    } finally {
      this.#accepting = {}
      // The client has left.
      if (!isOpen) {
        this.#connections.closedCount++
        this.#calls()?.closed(id, 1006, '')
      }
    }
  }

  push(connection: WsConnection, frame: WsFrame, droppable?: Droppable): void {
    const isCompressed = connection.isDeflating && frame.payloadBytes >= this.#compressFromBytes
    this.#outbox.push(connection, isCompressed ? frame.deflated : frame.plain, droppable)
  }

  await(connection: WsConnection, level: OutboxLevel): void {
    this.#outbox.await(connection, level)
  }

  pause(connection: WsConnection): void {
    if (connection.isOpen) this.#reading.pause(connection)
  }

  resume(connection: WsConnection): void {
    if (!connection.isPaused) return
    this.#reading.resume(connection)
    this.#keepalive.restart(connection)
  }

  fail(connection: WsConnection): void {
    this.drop(connection, 'E_INTERNAL')
  }

  /** Closes a connection and does not wait for the peer. */
  drop(connection: WsConnection, reason: OwnReason): void {
    if (connection.closeCode !== undefined) return
    const code = ERRORS[reason].closeCode
    this.close(connection, code, reason)
    // After the close frame.
    connection.socket.end()
    this.#forget(connection, code, reason)
  }

  close(connection: WsConnection, code: number, reason: string): void {
    const { websocket } = connection
    if (connection.closeCode !== undefined || websocket.readyState !== OPEN) return
    connection.closeCode = code
    this.#outbox.release(connection)
    if (connection.isPaused) this.#reading.resume(connection)
    websocket.close(code, reason)
  }

  #forget(connection: WsConnection, code: number, reason: string): void {
    if (connection.isClosed) return
    connection.isClosed = true
    this.#websockets.delete(connection)
    this.#connections.remove(connection)
    this.#calls()?.closed(connection.id, code, reason)
  }

  #listen(connection: WsConnection): void {
    const { id, websocket, socket } = connection
    this.#connections.add(connection)
    this.#websockets.add(connection)
    this.#keepalive.alive(connection)
    const onData = (chunk: Buffer) => {
      this.#keepalive.alive(connection)
      this.#reading.received(connection, chunk)
      if (!connection.boundaries.hasClosed) return
      socket.off('data', onData)
      endAfterClose(connection)
    }
    socket.on('data', onData)
    websocket.on('message', (data, isBinary) => {
      if (connection.closeCode === undefined && !connection.isClosed)
        this.#calls()?.message(id, data as Buffer, isBinary)
    })
    // `ws` has sent the close frame.
    websocket.on('error', (error) => this.#forget(connection, closeCodeOf(error), ''))
    websocket.on('close', (code, reason) => {
      this.#forget(connection, connection.closeCode ?? code, reason.toString())
      this.#outbox.clear(connection)
      this.#connections.forget(connection)
    })
  }

  #createServer({ compression, maxMessageBytes, closeTimeoutMs }: TransportOptions): WebSocketServer {
    // The types of `ws` do not have `closeTimeout` yet.
    const options: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      maxPayload: maxMessageBytes,
      closeTimeout: closeTimeoutMs,
      handleProtocols: () => this.#accepting.subprotocol ?? false,
      perMessageDeflate:
        compression === undefined ? false : { serverNoContextTakeover: true, clientNoContextTakeover: true },
    }
    const server = new WebSocketServer(options)
    server.on('headers', (lines: string[]) => {
      for (const [name, value] of Object.entries(this.#accepting.headers ?? {})) lines.push(`${name}: ${value}`)
    })
    return server
  }
}

/**
 * Ends the TCP connection when `ws` has ended its side, which it does after both close frames. RFC 6455 §7.1.1: the server
 * ends it first; `ws` alone waits for a peer that does not end its side.
 */
function endAfterClose({ socket }: WsConnection): void {
  if (socket.writableFinished) socket.destroy()
  else socket.once('finish', () => socket.destroy())
}

/** RFC 6455 §7.4.1. */
const PROTOCOL_ERROR = 1002
const INVALID_DATA = 1007
const POLICY_VIOLATION = 1008
const TOO_LARGE = 1009

const CODES: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: INVALID_DATA,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: POLICY_VIOLATION,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: TOO_LARGE,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: TOO_LARGE,
}

/** The code that `ws` closes with after this error. Errors of zlib have codes of their own. */
function closeCodeOf(error: NodeJS.ErrnoException): number {
  const { code = '' } = error
  return CODES[code] ?? (code.startsWith('WS_ERR_') ? PROTOCOL_ERROR : INVALID_DATA)
}
