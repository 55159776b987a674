import type { ErrorCode, GapReason, PresenceMember } from 'webmq-client/protocol'
import type { MaybePromise } from '../../base/maybe-promise.js'
import type { Actor } from '../../identity/actor.js'
import type { ObservedAction, OperatorAction } from '../../observing/observer.js'
import type { InboundMessage, ReadRange } from '../../ports/broker.js'
import type { Author } from '../../publishing/author.js'
import type { Publisher } from '../../publishing/publisher.js'
import type { Streams } from '../../streams/streams.js'
import type { Cluster } from '../operators/index.js'

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
  /** `epoch:offset.fingerprint` */
  readonly position: string
  readonly isPartial: boolean
  readonly isCut?: true
  readonly gap?: GapReason
}

/** What the API does with a running node. */
export interface ApiNode {
  readonly name: string
  readonly cluster: Pick<Cluster, 'disconnect' | 'revoke' | 'nodes' | 'find' | 'revocations'>
  readonly publisher: Pick<Publisher, 'publish' | 'publishAll'>
  readonly streams: Pick<Streams, 'use' | 'expect' | 'compete' | 'touch' | 'maxBytes'>
  /** A caller as a publisher, with its limits and what of it waits. */
  authorOf(actor: Actor): Author
  /** See {@link Refusals.add}. */
  refused(actor: Actor, action: ObservedAction, code: ErrorCode, target: string | undefined): void
  /** See {@link Observer.operated}. */
  operated(actor: Actor, action: OperatorAction, target: string): void
  read(range: ReadRange, key: string): MaybePromise<LoggedMessages>
  presence(key: string): MaybePromise<readonly PresenceMember[]>
  sessions(): Iterable<ListedSession>
  /** A row for each pattern and variant. */
  patterns(): Iterable<ListedPattern>
}
