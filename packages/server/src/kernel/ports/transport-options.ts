import type { Server } from 'node:http'

/** How messages are compressed. A compressed message that is received is measured against `maxMessageBytes` as it is decompressed. */
export interface CompressionOptions {
  /** Messages from this size on are compressed; smaller ones hardly become smaller. */
  readonly thresholdBytes: number
}

/**
 * A certificate with its private key. A transport MUST NOT read the files if its library takes the contents; the paths are
 * for libraries that take nothing else, and for error messages.
 */
export interface TlsCertificate {
  readonly certFile: string
  readonly keyFile: string
  /** PEM: the certificate of the server first, then the intermediate ones. */
  readonly cert: Buffer
  /** PEM: PKCS #8, PKCS #1 or SEC 1, not encrypted. */
  readonly key: Buffer
}

/** Options common to all transports. Every queue, timer and input has its limit here. */
export interface TransportOptions {
  /**
   * Address to bind; or `unix:` and the path of a Unix socket, with the `unixSocket` capability. The file does not exist, and
   * the transport MAY leave it when it stops.
   */
  readonly host: string
  /** Port to bind; 0 takes a free one. Ignored for a Unix socket. */
  readonly port: number
  /** I/O threads; ignored without the `threads` capability. */
  readonly threads: number
  /** Largest WebSocket message that is accepted; a larger one closes its connection with 1009. */
  readonly maxMessageBytes: number
  /** Bytes that may wait for one connection; over it, the connection is closed with 4008. */
  readonly maxOutboxBytes: number
  /**
   * Negotiates permessage-deflate with clients that offer it, without context takeover in either direction: each message is
   * compressed by itself. Absent: it is not negotiated, and a compressed frame is a violation of RFC 6455. Ignored without
   * the `compression` capability.
   */
  readonly compression?: CompressionOptions
  /** Largest request head; a larger one is answered with 431. */
  readonly maxHeaderBytes: number
  /** Connections held at once, upgrades in flight included; beyond it upgrades are answered with 503. */
  readonly maxConnections: number
  /** Time from accept to the end of the handshake, the decision of the sink included. */
  readonly handshakeTimeoutMs: number
  /**
   * Time from the first byte of a message to its last; a later one closes its connection with 4004. While the transport does
   * not read, the time does not pass. Ignored without the `pause` capability; default 30,000.
   */
  readonly messageTimeoutMs?: number
  /** A WebSocket ping is sent after this time without a byte from the peer; 0 turns pings off. */
  readonly pingIntervalMs: number
  /** Time after the ping until a silent connection is dropped with 4003. */
  readonly pingTimeoutMs: number
  /** Time that a peer has to answer a close frame. */
  readonly closeTimeoutMs: number
  /**
   * Time that a busy I/O thread may hold publications back so that several share one write; 0 turns that off. One that is
   * not busy never does, and what is sent to a single connection, or is urgent, is not held back. Ignored without the
   * `threads` capability, as nothing is held back then; default 10.
   */
  readonly flushIntervalMs?: number
  /**
   * Serves TLS 1.2 and 1.3 only, with ALPN `http/1.1`; needs the `tls` capability. The first certificate is for clients that
   * name no host, and for names that no certificate has. Otherwise the server name (SNI) decides: an exact name wins over a
   * wildcard, an earlier certificate over a later one. At least one.
   */
  readonly tls?: readonly TlsCertificate[]
  /**
   * Path of event streams on the transport's own port: a `GET` of it is told as an upgrade of the kind `sse`. Absent: there are
   * none. Ignored without the `sse` capability.
   *
   * An accepted stream is a connection that gets the bytes of its messages as they are, in the body of the response, and sends
   * nothing. What its peer sends is dropped, and much of it ends the stream with 4500. Every `pingIntervalMs` it gets a comment
   * (`:` and two line ends); one that takes nothing between two of them is dropped with 4003. The end of the response is its
   * only close frame: the sink is told the code of `Transport.close`, or 1006 when the peer ended it.
   */
  readonly ssePath?: string
  /**
   * Ranges of addresses, as `10.0.0.0/8`. A connection to the own port from one of them begins with a header of the PROXY
   * protocol, version 1 or 2, before TLS. The address in it stands for the peer's everywhere. A connection without a valid
   * header is closed and counted in `proxyHeaderRefusedCount`. Other connections begin without one. Needs the
   * `proxyProtocol` capability; default: none.
   */
  readonly proxyProtocolFrom?: readonly string[]
  /**
   * Gets every request on the port that is neither a WebSocket upgrade nor for an event stream. Never listens by itself. The
   * transport takes upgrades of its connections too; where it cannot, it answers 503 with `Connection: close`.
   */
  readonly httpServer?: Server
  /**
   * Paths of `httpServer` that orchestrators ask for. A connection that begins with a `GET` of one waits for no other kind, where
   * connections wait. Default: none.
   */
  readonly probePaths?: readonly string[]
}
