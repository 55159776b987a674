import type { Sender } from './connection/sender.js'
import type { ClientError } from './events/events.js'
import type { Requests } from './listening/requests.js'
import type { ResolvedOptions } from './options.js'
import type { ServerMessage, WebMQError } from './protocol/index.js'

/** What adds to a client, from a module of its own that apps without it do not pay for: `webmq-client/presence`. */
export interface ClientPart {
  /** A connection is live, and nothing of this part has been sent on it. */
  up(): void
  /** The connection is gone; requests have been answered. */
  down(): void
  /** A message that is for no other part: `presence`, or an `error` that names a key. */
  receive(message: ServerMessage): void
  /** The client is closed. */
  close(error: WebMQError): void
}

/** What a part may touch. */
export interface ClientCore {
  readonly options: ResolvedOptions
  readonly sender: Sender
  readonly requests: Requests
  report(error: ClientError): void
}
