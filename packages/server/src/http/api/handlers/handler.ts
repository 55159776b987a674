import type { MaybePromise } from '../../../base/maybe-promise.js'
import type { HookCalls } from '../../../hooks/index.js'
import type { Actor } from '../../../identity/actor.js'
import type { ResolvedOptions } from '../../../options/options.js'
import type { ApiNode } from '../node.js'
import type { AnswerOf, BodyOf, QueryOf } from '../route.js'
import type { ROUTES, RouteName } from '../routes.js'

/** What handlers work with. */
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
  readonly body: BodyOf<(typeof ROUTES)[Name]> | (Name extends 'publish' ? Buffer : never)
  readonly idempotencyKey: string | undefined
  /** The header of W3C Trace Context, not checked. */
  readonly traceparent: string | undefined
  /** Charges the caller for messages, beside the bytes of its request. */
  readonly spend: (messageCount: number) => void
}

/** Answers the requests of one route. */
export type Handler<Name extends RouteName> = (
  context: HandlerContext,
  call: Call<Name>,
) => MaybePromise<AnswerOf<(typeof ROUTES)[Name]>>
