import type { MaybePromise } from '../base/maybe-promise.js'
import type { Broker, InboundMessage } from '../ports/broker.js'
import type { Actor, ConnectFacts } from './actor.js'
import type { Identity } from './index.js'

export const HOOK_NAMES = ['connect', 'listen', 'publish', 'deliver', 'presence', 'disconnect'] as const

export type HookName = (typeof HOOK_NAMES)[number]
export type HookOutcome = 'ok' | 'refused' | 'failed'
export type HookCounts = Readonly<Record<HookName, Readonly<Record<HookOutcome, number>>>>

/** Those of a server without hooks: a series of a metric begins at 0. */
export const NO_HOOK_COUNTS = Object.fromEntries(
  HOOK_NAMES.map((name) => [name, { ok: 0, refused: 0, failed: 0 }]),
) as HookCounts

/** What hooks have made of a publish. */
export interface PublishChange {
  readonly key: string
  /** `undefined`: the payload is as it was. */
  readonly content: { readonly payload: Uint8Array; readonly isBinary: boolean } | undefined
}

/** What the application decides about clients, and never about itself. Asking nobody costs one check. */
export interface HookPort {
  /** Whether there is one of these. */
  has(...names: readonly HookName[]): boolean
  readonly counts: HookCounts
  measure(onTime: (name: HookName, durationMs: number) => void): void
  /**
   * The identity of a client that has verified its token, if it needs one.
   * @param facts Of the upgrade request; absent for a renewal.
   * @throws {WebMQError} A refusal, or `E_HOOK_FAILED`.
   */
  connect(caller: Actor, identity: Identity, facts: ConnectFacts | undefined): MaybePromise<Identity>
  /** Asks about a listen or a read of the history. @throws {WebMQError} A refusal, or `E_HOOK_FAILED`. */
  listen(caller: Actor, op: 'listen' | 'history', pattern: string, isReplay: boolean): MaybePromise<void>
  /**
   * Asks about a publish.
   * @param payload Borrowed for the duration of the call.
   * @returns What the hooks have changed, if anything.
   * @throws {WebMQError} A refusal, or `E_HOOK_FAILED`.
   */
  publish(
    caller: Actor,
    key: string,
    payload: Uint8Array,
    isBinary: boolean,
    isEphemeral: boolean,
  ): MaybePromise<PublishChange | undefined>
  /**
   * Asks about a presence request.
   * @param data JSON text.
   * @returns Other data for the member, if a hook has changed it.
   * @throws {WebMQError} A refusal, or `E_HOOK_FAILED`.
   */
  presence(
    caller: Actor,
    op: 'enter' | 'get' | 'watch',
    key: string,
    data: string | undefined,
  ): MaybePromise<string | undefined>
  /**
   * The message for the listeners of this node; `undefined` when they must not get it.
   * @throws {WebMQError} `E_HOOK_FAILED`; also when the hook answers with a promise, for which no message can wait.
   */
  deliver(message: InboundMessage): InboundMessage | undefined
  /**
   * The same broker, whose messages pass the hook `deliver` on their way to this node.
   * @param hasListeners Whether anyone on this node listens to the key: the hook is not asked for nobody.
   */
  delivering(broker: Broker, hasListeners: (key: string) => boolean): Broker
  /** Tells that a connection which had an identity has closed. Never throws; nobody waits. */
  disconnect(caller: Actor, code: number, reason: string, durationMs: number): void
}
