import type { WebMQError } from '../protocol/errors.js'
import type { RawMessage } from '../protocol/raw-message.js'
import type { Sender } from './connection/sender.js'
import type { ClientError } from './events/events.js'
import type { Replays } from './listening/replays.js'
import type { Requests } from './listening/requests.js'
import type { ResolvedOptions } from './options.js'
import type { Message } from './types.js'

/**
 * An extension of the client in a module of its own, such as `presence`, with verbs or events of its own. Apps that do
 * not import it do not pay for it. A part that only handles messages differently is a `Receiver` instead.
 *
 * `client.add((core) => new Rooms(core))` makes it; see `partOf`. A part encodes its requests itself, for example
 * `core.requests.send((id) => encodePresence({ verb: 'presence', id, … }), onReply)`, and decodes what it receives.
 */
export interface ClientPart {
  /** A connection is live, and listens again. This part has sent nothing on it yet. */
  up?(): void
  /** The connection is lost. Its requests have been settled. */
  down?(): void
  /** A message with a verb that the core does not know. Each part gets it, and decodes those of its own verbs. */
  receive?(message: RawMessage): void
  /** The server has ended what this client does at a key, for example because a new token does not grant it. */
  revoked?(key: string, error: WebMQError): void
  /** The client is closed; `up` follows if it is opened again. */
  close?(error: WebMQError): void
}

/** The parts of the client that an extension uses. */
export interface ClientCore {
  readonly options: ResolvedOptions
  /** Whether the connection is live, and its sending side. */
  readonly sender: Sender
  /** Requests with an `ok` or an `error` as their answer. */
  readonly requests: Requests
  /** Messages of the log that follow an answer. */
  readonly replays: Replays
  /**
   * Only with `webmq-client/schema`: checks a message, and returns it as handlers get it. A part passes messages through
   * it that it does not get by `listen`. Throws what the `error` event should get instead of the message.
   */
  accept?(message: Message<unknown>): Message<unknown>
  /** Why the client is closed; `undefined` if it is not. */
  closedBy(): WebMQError | undefined
  report(error: ClientError): void
}
