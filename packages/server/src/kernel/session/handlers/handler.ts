import type { ClientMessage, ClientVerb } from 'webmq-client/protocol'
import type { MaybePromise } from '../../base/maybe-promise.js'
import type { HookPort } from '../../identity/hook-port.js'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'

export type MessageOf<V extends ClientVerb> = Extract<ClientMessage, { verb: V }>

/**
 * Answers one message. Throws, or rejects with, a WebMQError to refuse it; any other error is a bug. A handler that has
 * waited MUST check `session.isClosed`, and MUST NOT answer when it is set.
 * Which later messages of the connection wait until a returned promise settles is decided by its `Inbox`.
 */
export type Handler<V extends ClientVerb> = (
  session: Session,
  services: SessionServices,
  message: MessageOf<V>,
  isBinary: boolean,
) => void | Promise<void>

/**
 * Asks the hooks about a message of a client that is no publish. Only what its handler would allow is asked about, so that a client
 * cannot make hooks work for what it may not do. The handler checks again what they have changed.
 * @returns What is to be handled instead; `undefined` for the message itself.
 * @throws {WebMQError} The errors of the handler's checks, the refusal of a hook, or `E_HOOK_FAILED`.
 */
type Ask<V extends ClientVerb> = (
  hooks: HookPort,
  session: Session,
  message: MessageOf<V>,
) => MaybePromise<MessageOf<V> | undefined>

export interface VerbRow<V extends ClientVerb> {
  readonly handle: Handler<V>
  /** Absent: hooks are not asked. */
  readonly ask?: Ask<V>
}

/** Verbs that features handle. */
type FeatureVerb = 'presence' | 'join' | 'leave' | 'request' | 'reply' | 'stream' | 'read'

/** Each verb once. A `listen` or `unlisten` that names a queue group has a row of its own. */
export type VerbTable = { readonly [V in ClientVerb]: VerbRow<V> } & {
  readonly join: VerbRow<'listen'>
  readonly leave: VerbRow<'unlisten'>
}
export type FeatureVerbs = Pick<VerbTable, FeatureVerb>
export type KernelVerbs = Omit<VerbTable, FeatureVerb>
