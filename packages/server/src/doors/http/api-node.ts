import type { ErrorCode, GapReason } from 'webmq-client/protocol'
import type { ObservedAction, OperatorAction } from '../../features/observing/observer.js'
import type { MaybePromise } from '../../kernel/base/maybe-promise.js'
import type { Actor } from '../../kernel/identity/actor.js'
import type { Revocations } from '../../kernel/identity/revocations.js'
import type { InboundMessage, Reader, ReadRange } from '../../kernel/ports/broker.js'
import type { Author } from '../../kernel/publishing/author.js'
import type { Publisher } from '../../kernel/publishing/publisher.js'

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
  readonly revocations: Pick<Revocations, 'covers'>
  readonly publisher: Pick<Publisher, 'publish' | 'publishAll'>
  /** A caller as a publisher, with its limits and what of it waits, and as a reader, who pays. @param isGone Default: never. */
  authorOf(actor: Actor, isGone?: () => boolean): Author
  refused(actor: Actor, action: ObservedAction, code: ErrorCode, target: string | undefined): void
  operated(actor: Actor, action: OperatorAction, target: string): void
  read(range: ReadRange, key: string, reader: Reader): MaybePromise<LoggedMessages>
  /** A row for each pattern and variant. */
  patterns(): Iterable<ListedPattern>
}
