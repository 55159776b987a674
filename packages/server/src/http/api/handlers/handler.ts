import type { MaybePromise } from '../../../base/maybe-promise.js'
import type { HookCalls } from '../../../hooks/index.js'
import type { Actor } from '../../../identity/actor.js'
import type { ResolvedOptions } from '../../../options/options.js'
import type { BodyFlow } from '../../body-flow.js'
import type { ApiNode } from '../node.js'
import type { AnswerOf, BodyOf, QueryOf } from '../route.js'
import type { ROUTES, RouteName } from '../routes.js'

export interface HandlerContext {
  readonly node: ApiNode
  readonly options: ResolvedOptions
  /** Absent when nobody wants to be asked. Operators are not asked about. */
  readonly hooks: HookCalls | undefined
}

/** A checked request. */
export interface Call<Name extends RouteName> {
  readonly caller: Actor
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

/** An answer that is no JSON. */
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

/** Answers the requests of one route. */
export type Handler<Name extends RouteName> = (
  context: HandlerContext,
  call: Call<Name>,
) => MaybePromise<AnswerOf<(typeof ROUTES)[Name]> | (Name extends 'readStream' ? RawAnswer : never)>
