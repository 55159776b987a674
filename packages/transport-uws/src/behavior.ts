import type { TransportOptions } from 'webmq-server/ports'
import type { RequestHead } from 'webmq-server/transports'
import { asksForWebSocket } from 'webmq-server/transports'
import type { UwsConnection } from './connection.js'
import type { UwsBehavior, UwsModule, UwsResponse } from './module.js'
import { readHead } from './request.js'

/** Events of connections. */
export interface UwsEvents {
  upgrade(head: RequestHead, response: UwsResponse, context: object): void
  open(connection: UwsConnection): void
  /** The client sent a message, a ping or a pong. */
  alive(connection: UwsConnection): void
  /** uWebSockets.js has sent a pong. */
  answered(connection: UwsConnection): void
  /** @param data Borrowed: valid until the call returns. */
  message(connection: UwsConnection, data: Uint8Array, isBinary: boolean): void
  /** A part of the waiting output was written. */
  drained(connection: UwsConnection): void
  closed(connection: UwsConnection, code: number, reason: string): void
}

/**
 * uWebSockets.js drops a connection with a too large message without a close frame. To close with 1009 instead, the
 * transport receives messages up to this many times the limit, and refuses them itself.
 */
const RECEIVE_MARGIN = 4
const MAX_PAYLOAD_LENGTH = 0x7fff_ffff

/**
 * Reasons that uWebSockets.js gives for its own 1006, and the proper codes (RFC 6455 §7.4.1). 'Received invalid close
 * payload' is missing, because it is also used for valid codes (1012-1014 and 3000-3999).
 */
const CODES_BY_REASON: Readonly<Record<string, number>> = {
  'Received too big message': 1009,
  'Received too big message, or other inflation error': 1009,
  'Received invalid UTF-8': 1007,
  'Received invalid WebSocket frame': 1002,
}

/** Settings and handlers for every path. Our transport does pings, timeouts and the outbox limit itself. */
export function uwsBehavior(
  options: TransportOptions,
  { SHARED_COMPRESSOR, SHARED_DECOMPRESSOR }: UwsModule,
  events: UwsEvents,
): UwsBehavior<UwsConnection> {
  return {
    // Also limits the decompressed size of a message.
    maxPayloadLength: Math.min(options.maxMessageBytes * RECEIVE_MARGIN, MAX_PAYLOAD_LENGTH),
    // Above its own limit, uWebSockets.js drops frames silently, or the connection without 4008.
    maxBackpressure: 0,
    idleTimeout: 0,
    maxLifetime: 0,
    // Shared: no context takeover, and no memory per connection.
    compression: options.compression === undefined ? 0 : SHARED_COMPRESSOR | SHARED_DECOMPRESSOR,
    sendPingsAutomatically: false,
    upgrade: (response, request, context) => {
      const head = readHead(request, response, options.host)
      // A key alone brings a request here; all other headers are checked together later.
      if (asksForWebSocket(head)) events.upgrade(head, response, context)
      else request.setYield(true)
    },
    open: (socket) => {
      const { connection } = socket.getUserData()
      connection.socket = socket
      events.open(connection)
    },
    message: (socket, message, isBinary) => {
      const { connection } = socket.getUserData()
      events.alive(connection)
      events.message(connection, new Uint8Array(message), isBinary)
    },
    ping: (socket) => {
      const { connection } = socket.getUserData()
      events.alive(connection)
      events.answered(connection)
    },
    pong: (socket) => events.alive(socket.getUserData().connection),
    drain: (socket) => events.drained(socket.getUserData().connection),
    close: (socket, code, reason) => {
      const text = Buffer.from(reason).toString()
      const ownCode = code === 1006 ? CODES_BY_REASON[text] : undefined
      const { connection } = socket.getUserData()
      if (ownCode !== undefined) events.closed(connection, ownCode, text)
      // A reason comes from the client only if a code does too.
      else events.closed(connection, code, code === 1006 ? '' : text)
    },
  }
}
