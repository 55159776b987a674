import type { ClientVerb, ErrorCode } from 'webmq-client/protocol'
import type { Accepted, OutboundMessage } from '../ports/broker.js'
import { copyBytes } from '../ports/copy-bytes.js'
import { isPromise, type MaybePromise } from '../ports/maybe-promise.js'
import type { ConnectionId } from '../ports/transport.js'

/** What an observer sees of a session. */
export interface SessionFacts {
  readonly id: string
  readonly connection: ConnectionId
  /** `undefined` for anonymous clients, and before the session has an identity. */
  readonly userId: string | undefined
  /** The client's IP address; empty when it is not known. Cost: it is put together at each call. */
  readonly address: string
  /** Unix time in milliseconds. */
  readonly openedAtMs: number
}

/** What an observer sees of an upgrade that was refused. */
export interface UpgradeFacts {
  readonly address: string
  readonly origin: string | undefined
}

/** What a client asked for. `connect`: its first token, or a connection. `message`: a message that could not be read. */
export type ObservedAction = ClientVerb | 'connect' | 'message'

/**
 * Is told what sessions do. It decides nothing; hooks do. Methods MUST be quick, MUST NOT throw, and run in order on the
 * event loop.
 */
export interface SessionObserver {
  /** The session has its first identity. */
  connected?(session: SessionFacts): void
  /** Follows {@link connected}, once. Its listens have ended too; nobody is told of each. */
  disconnected?(session: SessionFacts, code: number, reason: string, durationMs: number): void
  /** The pattern is new for the session, and live. */
  listened?(session: SessionFacts, pattern: string): void
  /** The client ended the listen, or its new token does not grant it. */
  unlistened?(session: SessionFacts, pattern: string): void
  /**
   * The broker has accepted the message, and it is no duplicate.
   * @param session Absent for messages that the process itself publishes.
   * @param message Its payload is borrowed for the duration of the call.
   */
  published?(session: SessionFacts | undefined, message: OutboundMessage, position: Accepted['position']): void
  /** @param target The key or the pattern, as the client wrote it. */
  refused?(session: SessionFacts, action: ObservedAction, code: ErrorCode, target: string | undefined): void
  /** No session exists, because the upgrade was refused. */
  upgradeRefused?(request: UpgradeFacts, code: ErrorCode): void
}

/** One observer that tells all of them, in order; it has only the methods that some of them have. */
export function combineObservers(observers: readonly SessionObserver[]): SessionObserver | undefined {
  if (observers.length < 2) return observers[0]
  const combined: { -readonly [Method in keyof SessionObserver]: SessionObserver[Method] } = {}
  for (const method of METHODS) {
    const listening = observers.filter((observer) => observer[method] !== undefined)
    if (listening.length === 0) continue
    combined[method] = (...args: unknown[]) => {
      for (const observer of listening) (observer[method] as (...args: unknown[]) => void)(...args)
    }
  }
  return combined
}

/** Every method; a missing one does not compile. */
const METHODS = Object.keys({
  connected: true,
  disconnected: true,
  listened: true,
  unlistened: true,
  published: true,
  refused: true,
  upgradeRefused: true,
} satisfies Record<keyof SessionObserver, true>) as readonly (keyof SessionObserver)[]

/** Tells the observer of a message once the broker has accepted it. */
export function observePublish(
  observer: SessionObserver | undefined,
  session: SessionFacts | undefined,
  message: OutboundMessage,
  accepted: MaybePromise<Accepted>,
): void {
  if (observer?.published === undefined) return
  const tell = (message: OutboundMessage, { position, isDuplicate }: Accepted) => {
    if (!isDuplicate) observer.published?.(session, message, position)
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
