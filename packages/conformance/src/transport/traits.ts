import type { TransportCapabilities } from 'webmq-server/ports'
import type { MakeCertificate } from './tls/certificates.js'

/** How closely a transport follows the port where its library decides. The suite asserts each value. */
export interface TransportTraits {
  /** Answers a violation of RFC 6455 with a close frame; else the TCP connection just ends. */
  readonly violationCloseFrames: boolean
  /** Notices a client that does not mask its frames. */
  readonly checksMasking: boolean
  /** Close code for a compressed message that is no DEFLATE data. */
  readonly invalidDeflateCode: 1002 | 1007
  /** Knows 1012-1014 and 3000-3999 when a peer closes with them; else they count as 1006. */
  readonly knowsEveryCloseCode: boolean
  /** `closed` comes after the peer's close frame or `closeTimeoutMs`; else as soon as the own close frame is queued. */
  readonly closeHandshake: boolean
  /** Accepts a request line that arrives in parts. Headers may always arrive in parts. */
  readonly takesSplitRequestLine: boolean
  /** The longest wait for an incomplete request head when `handshakeTimeoutMs` is short. */
  readonly headTimeoutMs: number
  /** Reports the port of the peer; else 0. */
  readonly remotePort: boolean
  /**
   * Accepts an offer of permessage-deflate that names `server_max_window_bits`, if it is 15; else it declines all of
   * them.
   */
  readonly namesServerWindow: boolean
  /** Over TLS, names `http/1.1` to clients that offer protocols (ALPN); else it names none. */
  readonly alpn: boolean
  /** Finds the certificate of a server name in any case (RFC 4343); else only in lower case, as browsers send it. */
  readonly ignoresServerNameCase: boolean
  /**
   * Over TLS, opens a WebSocket on a connection that has carried other requests; else it answers 503, after which clients come by
   * another connection.
   */
  readonly takesLaterUpgradesOverTls: boolean
}

/** The capabilities that a transport must report, and how closely it follows the port. */
export interface TransportExpectations {
  readonly capabilities: TransportCapabilities
  /** Only the differences from a transport that follows the port exactly. */
  readonly traits?: Partial<TransportTraits>
  /** Makes a certificate of these names, with a key; two calls give two keys. */
  readonly makeCertificate: MakeCertificate
  /**
   * Other suites run over TLS again, beside the rules of TLS. Default true; a variant of a transport may leave them to the
   * first one, for time.
   */
  readonly repeatsOverTls?: boolean
}

/** A transport that follows the port exactly. */
export const STRICT_TRAITS: TransportTraits = {
  violationCloseFrames: true,
  checksMasking: true,
  invalidDeflateCode: 1002,
  knowsEveryCloseCode: true,
  closeHandshake: true,
  takesSplitRequestLine: true,
  headTimeoutMs: 2_000,
  remotePort: true,
  namesServerWindow: true,
  alpn: true,
  ignoresServerNameCase: true,
  takesLaterUpgradesOverTls: true,
}
