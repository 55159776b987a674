import type { ErrorCode, GapReason, PresenceMember } from 'webmq-client/protocol'
import type { MaybePromise } from '../base/maybe-promise.js'
import type { Actor } from '../identity/actor.js'
import type { ObservedAction, OperatorAction } from '../observing/observer.js'
import type { Cluster } from '../operators/index.js'
import type { InboundMessage, Reader, ReadRange } from '../ports/broker.js'
import type { Author } from '../publishing/author.js'
import type { Publisher } from '../publishing/publisher.js'
import type { SharedStreams } from '../streams/shared-streams.js'
import type { StreamStops } from '../streams/stops.js'
import type { Streams } from '../streams/streams.js'

export interface ListedPattern {
  readonly pattern: string
  readonly references: number
}

export interface LoggedMessages {
  readonly messages: readonly InboundMessage[]
  /** `epoch:offset.fingerprint` */
  readonly position: string
  readonly isPartial: boolean
  readonly isCut?: true
  readonly gap?: GapReason
}

/** What HTTP asks of a node. */
export interface ApiNode {
  readonly name: string
  readonly cluster: Pick<Cluster, 'disconnect' | 'revoke' | 'nodes' | 'connections' | 'revocations'>
  readonly publisher: Pick<Publisher, 'publish' | 'publishAll'>
  /** Streams with many writers, and all streams for those who read them as bytes. */
  readonly sharedStreams: SharedStreams
  /** A caller as a publisher, with its limits and what of it waits, and as a reader, who pays. @param isGone Default: never. */
  authorOf(actor: Actor, isGone?: () => boolean): Author
  refused(actor: Actor, action: ObservedAction, code: ErrorCode, target: string | undefined): void
  operated(actor: Actor, action: OperatorAction, target: string): void
  readonly streams: Pick<Streams, 'write' | 'read'>
  readonly streamStops: Pick<StreamStops, 'begin' | 'answer'>
  read(range: ReadRange, key: string, reader: Reader): MaybePromise<LoggedMessages>
  presence(key: string): MaybePromise<readonly PresenceMember[]>
  /** A row for each pattern and variant. */
  patterns(): Iterable<ListedPattern>
}
