import type { TextServerMessage } from 'webmq-client/protocol'
import type { UpgradeRequest } from '../../ports/transport.js'
import type { SessionLimits } from '../effective-limits.js'
import type { Session } from '../session.js'

/** An event stream that a client asks for. */
export interface AskedEventStream {
  /** Each once; at least one. */
  readonly patterns: readonly string[]
  /** @throws {WebMQError} `E_UNSUPPORTED`: this node does not serve it. */
  assertServed(): void
  /**
   * Resolves when it has begun, or the session has ended.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_LISTEN_LIMIT`, those of a hook, and of the log.
   */
  begin(session: Session): Promise<void>
}

/** The door of event streams: what they ask for, and how sessions write to them. */
export interface EventStreams {
  /** @throws {WebMQError} The request says what no listen may say. */
  read(request: UpgradeRequest, limits: SessionLimits): AskedEventStream
  /** Encodes the first message of a session. */
  welcome(session: Session): string
  /** Encodes any other message of the server. */
  encode(message: TextServerMessage): string
}

/** What a reader has of a stream, by the id of its last event. */
export interface StreamCursor {
  readonly stream: string
  readonly sequence: number
  /** In UTF-16 units of a text, or bytes. */
  readonly length: number
}

/** Serves event streams that follow the stream of a key. */
export interface StreamFollower {
  /** @throws {WebMQError} `E_UNSUPPORTED`. */
  assertSupported(key: string): void
  /** Resolves when it has begun, or the session has ended. @throws {WebMQError} `E_FORBIDDEN`, those of a hook, and of the log. */
  begin(session: Session, key: string, cursor: StreamCursor | undefined): Promise<void>
}
