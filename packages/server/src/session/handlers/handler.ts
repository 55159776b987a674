import type { ClientMessage, ClientVerb, TextServerMessage } from 'webmq-client/protocol'
import type { WorkMeter } from '../../ports/work-meter.js'

/** The message of one verb. */
export type MessageOf<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/** What every handler may use. Each handler's own context adds what its verb needs, and nothing else. */
export interface HandlerContext {
  /** Whether the session has ended. A handler that has waited MUST check this, and MUST NOT answer when it is set. */
  readonly isClosed: boolean
  /** Counts work beyond the usual of the verb: see `work/costs.ts`. Use it at once, do not keep it. */
  readonly meter: WorkMeter & {
    /** As `spend`, for the last work of a request: nothing waits for it. */
    charge(units: number): void
  }
  reply(message: TextServerMessage): void
}

/**
 * Answers one message. Throws, or rejects with, a WebMQError to refuse it; any other error is a bug.
 * Which later messages of the connection wait until a returned promise settles is decided by its `Inbox`.
 */
export type Handler<V extends ClientVerb, Context extends HandlerContext = HandlerContext> = (
  context: Context,
  message: MessageOf<V>,
  isBinary: boolean,
) => void | Promise<void>
