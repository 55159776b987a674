import { type Members, type ObjectOf, object, type Shape, type ValueOf } from '../../../kernel/base/shape.js'
import type { ApiErrorCode } from './statuses.js'

/**
 * Who may call a route: everybody who reaches the port, a client within its grants, or only an operator, who has an API
 * key and may call all routes.
 */
export type RouteAccess = 'everybody' | 'client' | 'operator'

/** What a body may weigh: one message, many messages, or a few short members. */
export type BodySize = 'message' | 'batch' | 'small'

/** One row of the table of routes. It checks requests and makes the OpenAPI document. */
export interface Route<Q extends Members = Members, B = unknown, A = unknown> {
  readonly method: 'GET' | 'POST'
  readonly path: `/api/${string}`
  readonly access: RouteAccess
  /** A few words. */
  readonly summary: string
  /** Sentences. */
  readonly description: string
  /** Parameters of the query. */
  readonly parameters: Q
  readonly query: Shape<ObjectOf<Q>>
  readonly body?: { readonly shape: Shape<B>; readonly size: BodySize; readonly examples: Readonly<Record<string, B>> }
  /** The body may be bytes too: `application/octet-stream`. */
  readonly takesBytes?: boolean
  /** A body that is no JSON is used while it arrives: bytes, or `text/plain`. */
  readonly takesFlow?: boolean
  /** The answer may be text or bytes, as the header `Accept` says. */
  readonly answersRaw?: boolean
  /** The header `Idempotency-Key` names the message. */
  readonly takesIdempotencyKey?: boolean
  readonly answer: Shape<A>
  /** Errors beside those of every route. */
  readonly errors?: readonly ApiErrorCode[]
}

export function route<const Q extends Members, B, A>(row: Omit<Route<Q, B, A>, 'query'>): Route<Q, B, A> {
  return { ...row, query: object(row.parameters) }
}

export type QueryOf<R> = R extends { readonly query: Shape<infer Q> } ? Q : never
export type BodyOf<R> = R extends { readonly body?: { readonly shape: infer S } } ? ValueOf<S> : undefined
export type AnswerOf<R> = R extends { readonly answer: Shape<infer A> } ? A : never
