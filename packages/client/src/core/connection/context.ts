import type { CoreMessage } from '../../protocol/decode-server.js'
import type { WebMQError } from '../../protocol/errors.js'
import type { SessionLimits } from '../../protocol/messages.js'
import type { RawMessage } from '../../protocol/raw-message.js'
import type { ClientStatus } from '../events/events.js'

/** Who gets what happens on a connection. */
export interface ConnectionContext {
  /**
   * A connection is live and nothing was sent on it: listen again, then flush. Called before the app's state changes.
   */
  up(limits: SessionLimits): void
  down(): void
  status(changes: Partial<ClientStatus>): void
  /** A message that the connection does not handle itself. */
  receive(message: CoreMessage | RawMessage): void
  report(error: unknown): void
  /** In development: a server was asked for an upgrade. Some never answer. */
  asked?(url: string, token: string | undefined): void
  /**
   * In development: an attempt, or its connection, has ended. Returns the error with its reason, if that is known.
   * Browsers do not tell why an upgrade failed.
   */
  failed?(error: WebMQError, failedAttempts: number): WebMQError
}

/** The context of a connection in this build: as it is or, in development, with what watches the connection. */
export let watched = (context: ConnectionContext): ConnectionContext => context

/** Sets what watches all connections. */
export function watchConnections(by: typeof watched): void {
  watched = by
}
