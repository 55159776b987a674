import type { ClientVerb, ErrorCode } from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { isPromise, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { Actor } from '../../kernel/identity/actor.js'
import type { Accepted, OutboundMessage } from '../../kernel/ports/broker.js'

export interface UpgradeFacts {
  readonly address: string
  readonly origin: string | undefined
}

export type OperatorAction =
  | 'connections'
  | 'user'
  | 'patterns'
  | 'disconnect'
  | 'revoke'
  | 'info'
  | 'config'
  | 'openapi'

/** What was asked for. `connect`: a client's first token, or a connection. `message`: a message that could not be read. */
export type ObservedAction = ClientVerb | 'connect' | 'message' | OperatorAction

/**
 * Is told what happens through the doors of the server. It decides nothing; hooks do. Methods MUST be quick, MUST NOT
 * throw, and run in order on the event loop.
 */
export interface Observer {
  /** The session has its first identity. */
  connected?(session: Actor): void
  /** Follows {@link connected}, once. Its listens have ended too; nobody is told of each. */
  disconnected?(session: Actor, code: number, reason: string, durationMs: number): void
  /** The pattern is new for the session, and live. */
  listened?(session: Actor, pattern: string): void
  /** The client ended the listen, or its new token does not grant it. */
  unlistened?(session: Actor, pattern: string): void
  /**
   * The broker has accepted the message, and it is no duplicate.
   * @param message Its payload is borrowed for the duration of the call.
   */
  published?(actor: Actor, message: OutboundMessage, position: Accepted['position']): void
  /** @param target The key or the pattern, as the client wrote it. */
  refused?(actor: Actor, action: ObservedAction, code: ErrorCode, target: string | undefined): void
  /** No session exists, because the upgrade was refused. */
  upgradeRefused?(request: UpgradeFacts, code: ErrorCode): void
  /** `count` more upgrades were refused because the node is full: it holds as many connections as it may. */
  turnedAway?(count: number): void
  /** An operator asks for something that changes the server. @param target Such as `user ann`. */
  operated?(actor: Actor, action: OperatorAction, target: string): void
}

/** One observer that tells all of them, in order; it has only the methods that some of them have as their own. */
export function combineObservers(observers: readonly Observer[]): Observer | undefined {
  if (observers.length < 2) return observers[0]
  const combined: { -readonly [Method in keyof Observer]: Observer[Method] } = {}
  for (const method of new Set(observers.flatMap((observer) => Object.keys(observer) as (keyof Observer)[]))) {
    const listening = observers.filter((observer) => observer[method] !== undefined)
    combined[method] = (...args: unknown[]) => {
      for (const observer of listening) (observer[method] as (...args: unknown[]) => void)(...args)
    }
  }
  return combined
}

export function observePublish(
  observer: Observer | undefined,
  actor: Actor,
  message: OutboundMessage,
  accepted: MaybePromise<Accepted>,
): void {
  if (observer?.published === undefined) return
  const tell = (message: OutboundMessage, { position, isDuplicate }: Accepted) => {
    if (!isDuplicate) observer.published?.(actor, message, position)
  }
  if (!isPromise(accepted)) {
    tell(message, accepted)
    return
  }
  // The publisher may reuse its bytes before the broker answers.
  const copy = { ...message, payload: copyBytes(message.payload) }
  accepted.then(
    (accepted) => tell(copy, accepted),
    // The publisher is told of the failure.
    () => undefined,
  )
}
