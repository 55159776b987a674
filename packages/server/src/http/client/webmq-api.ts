import { randomUUID } from 'node:crypto'
import { encodeJson, type PresenceMember } from 'webmq-client/protocol'
import type { AnswerOf, BodyOf, QueryOf } from '../api/route.js'
import type { ROUTES } from '../api/routes.js'
import { type ApiRequest, type RequestOptions, Requests } from './requests.js'

export { WebMQError } from 'webmq-client/protocol'

type Routes = typeof ROUTES
type Answer<Name extends keyof Routes> = AnswerOf<Routes[Name]>

/** Options of {@link WebMQApi}. */
export type WebMQApiOptions = RequestOptions
/** The answer to a publish. */
export type ApiPublished = Answer<'publish'>
/** Which messages of a key to read. */
export type ApiHistoryQuery = Omit<QueryOf<Routes['history']>, 'key'>
/** Connections of one node or of all. */
export type ApiConnections = Answer<'connections'>
/** At which nodes a user is. */
export type ApiUserPlaces = Answer<'user'>
/** The nodes. */
export type ApiInfo = Answer<'info'>
/** Which connections to end: of a `user`, of an `address`, or one `session`. */
export type DisconnectRequest = BodyOf<Routes['disconnect']>
/** Which tokens to revoke: those of a `user`, or one by its `tokenId`; `until` in Unix seconds. */
export type RevokeRequest = BodyOf<Routes['revoke']>

/** One message of {@link WebMQApi.publishBatch}. */
export interface ApiBatchMessage {
  readonly key: string
  /** Any JSON value, sent as text, or bytes, sent as they are. */
  readonly payload: unknown
  /** Default: a random one, so that a retry is not delivered twice. */
  readonly id?: string
}

/** A message of the log. */
export interface ApiHistoryMessage {
  readonly key: string
  /** Absent when the message is not logged. */
  readonly position?: string
  /** The JSON value of a text message, the bytes of a binary one, or a text that is no JSON. */
  readonly payload: unknown
  /** Its place in a stream. */
  readonly stream?: Answer<'history'>['messages'][number]['stream']
}

/** Messages of a key. */
export interface ApiHistory extends Omit<Answer<'history'>, 'messages'> {
  readonly messages: readonly ApiHistoryMessage[]
}

/**
 * The HTTP API of a WebMQ server, for back ends. It loads nothing of the server itself. What fails for a passing reason
 * is sent again, each message with the same id, so that none is delivered twice.
 *
 * Every method throws a {@link WebMQError} with the code that the server answers with, or with `E_CONNECT_FAILED` or
 * `E_TIMEOUT`.
 */
export class WebMQApi {
  readonly #requests: Requests

  /** @throws {WebMQError} `E_OPTION_INVALID` */
  constructor(options: WebMQApiOptions) {
    this.#requests = new Requests(options)
  }

  /** Publishes a message. Resolves once the broker has accepted it. */
  async publish(
    key: string,
    payload: unknown,
    { id = randomUUID() }: { readonly id?: string } = {},
  ): Promise<ApiPublished> {
    const headers = { 'idempotency-key': id }
    const request =
      payload instanceof Uint8Array ? { query: { key }, body: payload } : { body: { key, payload: jsonOf(payload) } }
    return await this.#send<'publish'>('/api/publish', { headers, ...request })
  }

  /** Publishes messages in order; at most 1,000. Resolves once the broker has accepted all of them. */
  async publishBatch(messages: readonly ApiBatchMessage[]): Promise<readonly ApiPublished[]> {
    const body = {
      messages: messages.map(({ key, payload, id = randomUUID() }) =>
        payload instanceof Uint8Array
          ? { key, id, base64: Buffer.from(payload).toString('base64') }
          : { key, id, payload: jsonOf(payload) },
      ),
    }
    const { results } = await this.#send<'publishBatch'>('/api/publish/batch', { body })
    return results
  }

  /** Reads messages of a key from the log. */
  async history(key: string, query: ApiHistoryQuery = {}): Promise<ApiHistory> {
    const page = await this.#send<'history'>('/api/history', { query: { key, ...query } })
    const messages = page.messages.map(({ key, position, payload, text, base64, stream }) => ({
      key,
      ...(position === undefined ? undefined : { position }),
      ...(stream === undefined ? undefined : { stream }),
      payload: base64 === undefined ? (text ?? payload) : new Uint8Array(Buffer.from(base64, 'base64')),
    }))
    return { ...page, messages }
  }

  /** The members of a key, on all nodes. */
  async presence(key: string): Promise<readonly PresenceMember[]> {
    const { members } = await this.#send<'presence'>('/api/presence', { query: { key } })
    return members
  }

  /** Lists connections: of the node that answers, another one or all. Needs an API key, as everything below. */
  async connections(query: QueryOf<Routes['connections']> = {}): Promise<ApiConnections> {
    return await this.#send<'connections'>('/api/connections', { query: { ...query } })
  }

  /** Finds a user: at which nodes, with how many connections. */
  async user(user: string): Promise<ApiUserPlaces> {
    return await this.#send<'user'>('/api/user', { query: { user } })
  }

  /** Ends connections on all nodes. */
  async disconnect(request: DisconnectRequest): Promise<Answer<'disconnect'>> {
    return await this.#send<'disconnect'>('/api/disconnect', { body: request })
  }

  /** Revokes tokens on all nodes. */
  async revoke(request: RevokeRequest): Promise<Answer<'revoke'>> {
    return await this.#send<'revoke'>('/api/revoke', { body: request })
  }

  /** Describes the nodes. */
  async info(): Promise<ApiInfo> {
    return await this.#send<'info'>('/api/info')
  }

  async #send<Name extends keyof Routes>(path: Routes[Name]['path'], request: ApiRequest = {}): Promise<Answer<Name>> {
    return (await this.#requests.send(path, request)) as Answer<Name>
  }
}

/** What JSON cannot say is refused here, not sent as something else. */
function jsonOf(payload: unknown): unknown {
  return JSON.parse(encodeJson(payload))
}
