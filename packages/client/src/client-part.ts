import type { Sender } from './connection/sender.js'
import type { ClientError } from './events/events.js'
import type { Requests } from './listening/requests.js'
import type { ResolvedOptions } from './options.js'
import type { ServerMessage, WebMQError } from './protocol/index.js'

/**
 * An extension of the client in a module of its own, such as `webmq-client/presence`. Apps without it do not pay for
 * it.
 */
export interface ClientPart {
  /** A connection is live. This part has sent nothing on it yet. */
  up(): void
  /** The connection is lost. Its requests have been settled. */
  down(): void
  /** A message for parts: `presence`, or an `error` with a key. */
  receive(message: ServerMessage): void
  /** The client is closed; `up` follows if it is opened again. */
  close(error: WebMQError): void
}

/** The parts of the client that an extension uses. */
export interface ClientCore {
  readonly options: ResolvedOptions
  readonly sender: Sender
  readonly requests: Requests
  /** Why the client is closed; `undefined` if it is not. */
  closedBy(): WebMQError | undefined
  report(error: ClientError): void
}
