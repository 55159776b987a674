import type { ErrorCode, GapReason, PresenceMember } from 'webmq-client/protocol'
import type { MaybePromise } from '../../../base/maybe-promise.js'
import type { HookCalls } from '../../../hooks/index.js'
import type { Actor } from '../../../identity/actor.js'
import type { ObservedAction, OperatorAction } from '../../../observing/observer.js'
import type { Cluster } from '../../../operators/index.js'
import type { ResolvedOptions } from '../../../options/server-options.js'
import type { InboundMessage, Reader, ReadRange } from '../../../ports/broker.js'
import type { Author } from '../../../publishing/author.js'
import type { Publisher } from '../../../publishing/publisher.js'
import type { SharedStreams } from '../../../streams/shared-streams.js'
import type { StreamStops } from '../../../streams/stops.js'
import type { Streams } from '../../../streams/streams.js'
import type { BodyFlow } from '../../body-flow.js'
import type { AnswerOf, BodyOf, QueryOf } from '../route.js'
import type { ROUTES, RouteName } from '../routes.js'

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

export interface HandlerContext {
  readonly node: ApiNode
  readonly options: ResolvedOptions
  /** Absent when nobody wants to be asked. Operators are not asked about. */
  readonly hooks: HookCalls | undefined
}

export interface Call<Name extends RouteName> {
  readonly caller: Actor
  /** Nobody waits for the answer any more. */
  readonly isGone: () => boolean
  readonly query: QueryOf<(typeof ROUTES)[Name]>
  /** The checked JSON, or the bytes of a body that is no JSON. */
  readonly body:
    | BodyOf<(typeof ROUTES)[Name]>
    | (Name extends 'publish' ? Buffer : Name extends 'writeStream' ? BodyFlow : never)
  /** The header, where an answer need not be JSON. */
  readonly accept: string | undefined
  readonly idempotencyKey: string | undefined
  /** The header of W3C Trace Context, not checked. */
  readonly traceparent: string | undefined
  /** Charges the caller for messages, beside the bytes of its request. */
  readonly spend: (messageCount: number) => void
  /** Charges for a message of a body that arrives, and waits while the caller has overdrawn its budget. */
  readonly pay: (byteCount: number) => Promise<void>
}

export class RawAnswer {
  readonly contentType: string
  readonly body: string | Uint8Array
  readonly headers: Readonly<Record<string, string>>

  constructor(contentType: string, body: string | Uint8Array, headers: Readonly<Record<string, string>>) {
    this.contentType = contentType
    this.body = body
    this.headers = headers
  }
}

export type Handler<Name extends RouteName> = (
  context: HandlerContext,
  call: Call<Name>,
) => MaybePromise<AnswerOf<(typeof ROUTES)[Name]> | (Name extends 'readStream' ? RawAnswer : never)>
