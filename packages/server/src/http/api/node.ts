import type { GapReason, PresenceMember } from 'webmq-client/protocol'
import type { PublishResult } from '../../api.js'
import type { Cluster } from '../../cluster/index.js'
import type { Identity } from '../../identity/index.js'
import type { InboundMessage, OutboundMessage, ReadRange } from '../../ports/broker.js'
import type { MaybePromise } from '../../ports/maybe-promise.js'
import type { Stamps } from '../../routing/stamps.js'

/** What the API needs to know of a session. */
export interface ListedSession {
  readonly connection: number
  readonly id: string
  readonly userId: string | undefined
  readonly address: string
  readonly openedAtMs: number
  readonly listenCount: number
  patterns(): readonly string[]
}

/** A pattern and the number of those who listen with it. */
export interface ListedPattern {
  readonly pattern: string
  readonly references: number
}

/** Messages of the log. */
export interface LoggedMessages {
  readonly messages: readonly InboundMessage[]
  /** `epoch:offset` */
  readonly position: string
  readonly isPartial: boolean
  readonly isCut?: true
  readonly gap?: GapReason
}

/** What the API does with a running node. */
export interface ApiNode {
  readonly name: string
  readonly cluster: Pick<Cluster, 'disconnect' | 'revoke' | 'nodes' | 'revocations'>
  /** Stamps messages on their way. */
  readonly stamps: Pick<Stamps, 'of'>
  /**
   * Counts publishes of a user against the same limit as those over WebSockets.
   * @throws {WebMQError} `E_RATE_LIMIT`, with `retryAfterMs`; nothing was counted.
   */
  passPublish(identity: Identity, byteCount: number, messageCount: number): void
  /** Publishes in order; resolves once the broker has accepted all messages. */
  publish(messages: readonly OutboundMessage[]): MaybePromise<readonly PublishResult[]>
  read(range: ReadRange, key: string): MaybePromise<LoggedMessages>
  presence(key: string): MaybePromise<readonly PresenceMember[]>
  sessions(): Iterable<ListedSession>
  /** A row for each pattern and variant. */
  patterns(): Iterable<ListedPattern>
}
