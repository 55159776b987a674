import type { MaybePromise } from '../../../../kernel/base/maybe-promise.js'
import type { Actor } from '../../../../kernel/identity/actor.js'
import type { ApiNode } from '../../api-node.js'
import type { BodyFlow } from '../../body-flow.js'
import type { HttpContext } from '../../context.js'
import type { StreamAddress } from '../../stream-call.js'
import type { AnswerOf, BodyOf, QueryOf } from '../route.js'
import type { ROUTES, RouteName } from '../routes.js'

export interface HandlerContext extends Pick<HttpContext, 'options' | 'hooks'> {
  readonly node: ApiNode
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

/** Handlers of routes, which the HTTP API calls. */
type Handlers<Name extends RouteName> = { readonly [R in Name]: Handler<R> }

/** Routes that features answer. */
export type FeatureRoute =
  | 'presence'
  | 'writeStream'
  | 'readStream'
  | 'connections'
  | 'user'
  | 'disconnect'
  | 'revoke'
  | 'info'
export type FeatureRoutes = Handlers<FeatureRoute> & {
  /** No rows of the table: their paths contain keys. */
  readonly streamAddress: StreamAddress
}
export type OwnRoutes = Handlers<Exclude<RouteName, FeatureRoute>>

/** A node, with what its features answer. */
export interface RoutedNode extends ApiNode {
  readonly routes: () => Promise<FeatureRoutes>
}
