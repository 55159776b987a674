/** Limits and timers of an engine. */
export interface NativeOptions {
  /** I/O threads, 1 to 64. */
  threads: number
  maxMessageBytes: number
  maxOutboxBytes: number
  /** Messages from this size on are compressed for clients that offer permessage-deflate; absent: it is not negotiated. */
  compressionThresholdBytes?: number
  maxHeaderBytes: number
  /** 0: as many as the limit of open files allows. */
  maxConnections: number
  handshakeTimeoutMs: number
  /** Time from the first byte of a message to its last; 0: any; default 30,000. */
  messageTimeoutMs?: number
  /** 0: no pings. */
  pingIntervalMs: number
  pingTimeoutMs: number
  closeTimeoutMs: number
  /** Time that a busy thread may hold publications back so that they share writes; 0: never; default 10. */
  flushIntervalMs?: number
  /** Connections from these networks, as `10.0.0.0/8`, begin with a PROXY header, or are closed; default: none. */
  proxyProtocolFrom?: readonly string[]
  /** Certificates of the listening socket, which then serves TLS and nothing else; the first is the default. Copied. */
  tls?: readonly NativeCertificate[]
  /** Whether plain HTTP requests are handed over; otherwise they are answered with 426. */
  handsHttpOver: boolean
  /** Path of event streams: a GET of it is told as an upgrade; absent: there are none. */
  eventStreamPath?: string
}

/** A certificate with its private key, both in PEM. */
export interface NativeCertificate {
  /** The certificate of the server first, then those that lead to its root. */
  cert: Buffer
  /** PKCS #8, PKCS #1 or SEC 1, without a passphrase. */
  key: Buffer
}

/** Counters since the start; gauges at the moment of the call. */
export interface NativeStats {
  connections: number
  acceptedCount: number
  refusedCount: number
  /** Those of them that found the engine full. */
  fullCount: number
  connectionLimit: number
  /** Connections of a proxy that were closed because they did not begin with a valid PROXY header. */
  proxyHeaderRefusedCount: number
  closedCount: number
  slowConsumerCount: number
  conflatedCount: number
  droppedCount: number
  receivedMessageCount: number
  /** Those of them that were answered without JavaScript. */
  answeredMessageCount: number
  receivedByteCount: number
  deliveredCount: number
  sentByteCount: number
  /** Memory for input that is not complete or not decoded. */
  partialBytes: number
  /** Times that a thread was started again after a failure. */
  restartCount: number
  outboxBytes: number
}

/** Where an engine listens. */
export interface NativeAddress {
  host: string
  port: number
}

/**
 * A running engine. Commands go in and events come out packed, as `crates/engine/src/bridge/{command,event}.rs` define.
 * Errors have a `code` of WebMQ's error table.
 */
export interface NativeEngine {
  /**
   * Lets the event loop run threads' work while there is little of it. A message then changes no thread.
   * @param events Kept, and filled with packed events before each call of `turn`.
   * @param commands Kept; `turn` leaves packed commands at its start.
   * @param turn Gets the bytes of the events, returns the bytes of the commands.
   * @returns Whether the runtime can do that. If not, the threads do everything and call `wake`.
   */
  enableInline(events: Buffer, commands: Buffer, turn: (length: number) => number): boolean
  /** Binds an IP address and accepts connections on it. Port 0 takes a free one. */
  listen(host: string, port: number): NativeAddress
  /** Accepts connections on a Unix socket. The file must not exist, and stays when the engine ends. */
  listenUnix(path: string): void
  /**
   * Serves these certificates to all handshakes that begin from now on. Throws `E_OPTION_INVALID` if one cannot be used, or
   * the engine was started without `tls`; all old ones stay then.
   */
  setCertificates(certificates: readonly NativeCertificate[]): void
  /** Takes a duplicate of a connected socket over, with the bytes that were read from it. The caller closes its own. */
  attach(fd: number, head: Uint8Array): void
  /**
   * Submits the packed commands in the first `length` bytes. They are copied.
   * @returns Whether more may be published. If not, `wake` is called when {@link isWritable}.
   */
  submit(packed: Uint8Array, length: number): boolean
  /**
   * Whether more may be published: the threads keep up with what is submitted, and most connections with their output. It
   * is `true` again after a second, unless connections take a lot.
   */
  isWritable(): boolean
  /**
   * Copies packed events into `target`.
   * @returns Their bytes; 0 when nothing waits; negative: the bytes that the next event needs.
   */
  drain(target: Uint8Array): number
  /**
   * As {@link drain}, only of connections that had nothing else to be handled. For a caller that has handled all events of an
   * earlier `drainFront`, and not yet those of `drain`: these are handled first, without harm to the order of a connection.
   * @param handledBytes Of the events that `drain` gave last, so many bytes were handled.
   * @returns Their bytes; 0 when nothing waits, and while those of `drain` may hold earlier messages of these connections.
   */
  drainFront(target: Uint8Array, handledBytes: number): number
  /**
   * Descriptor of a handed over HTTP connection, which the caller then owns; -1 if there is none. With TLS, a Unix socket that
   * carries the plaintext.
   */
  takeSocket(token: number): number
  stats(): NativeStats
  /** Closes the listening socket; a `quiet` event of every thread says when it is done. */
  stopAccepting(): void
  /** Closes every connection with 1001 and ends the threads; each says `ended` last. */
  shutDown(): void
  /** Ends what is left and joins the threads. Idempotent. */
  close(): void
}

/** Makes a {@link NativeEngine}. Keeps the process alive until it is closed. */
export interface NativeEngineConstructor {
  /** @param wake Called on the event loop when events wait, once until the next `drain`. */
  new (options: NativeOptions, wake: () => void): NativeEngine
}

/** Thrown when there is no addon for this machine. */
export interface NativeEngineMissing extends Error {
  code: 'E_TRANSPORT_MISSING'
  /** What is missing, and how to get it where that is possible: one sentence, as for a log line, without a full stop. */
  reason: string
}

/**
 * Loads the addon: the one that was built in this checkout, else that of the package `webmq-native-<platform>`.
 * @throws {NativeEngineMissing} Its message is the reason, and the ws transport as the other way out.
 */
export function loadNativeEngine(): NativeEngineConstructor
