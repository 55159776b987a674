import {
  encodeJson,
  isErrorCode,
  isMessageId,
  type PresenceMember,
  validateKey,
  WebMQError,
} from 'webmq-client/protocol'
import { copyBytes } from '../../kernel/base/copy-bytes.js'
import { andThen, type MaybePromise } from '../../kernel/base/maybe-promise.js'
import { parseJson } from '../../kernel/base/parse-json.js'
import { type Actor, isTrusted } from '../../kernel/identity/actor.js'
import type { Rooms } from '../../kernel/node/assemble.js'
import { routesOf } from '../../kernel/node/features.js'
import type { ServerNode } from '../../kernel/node/node.js'
import type { ServerNodeParts } from '../../kernel/node/parts.js'
import { formatPosition } from '../../kernel/ports/position.js'
import { assertKeyWords } from '../../kernel/ports/word-limits.js'
import { type AuthorLimits, requestAuthor } from '../../kernel/publishing/author.js'
import type { BatchDraft } from '../../kernel/publishing/draft.js'
import {
  type BatchMessage,
  type PublishOptions,
  type PublishResult,
  resultOf,
} from '../../kernel/publishing/publish-options.js'
import { DEFAULT_WITHIN_MS, MAX_WITHIN_MS } from '../../kernel/publishing/requests.js'
import type { FeatureRoutes, RoutedNode } from '../http/api/handlers/handler.js'
import { type HistoryQuery, type HistoryResult, readHistory } from './read-history.js'
import type { StreamContent, StreamOptions, StreamWriter } from './webmq-server.js'

/** What programs in the process, and the HTTP API, do with a node. */
export class NodeApi {
  readonly #parts: ServerNodeParts
  readonly #rooms: Rooms
  readonly http: RoutedNode
  /** Loaded for the first request, or for the next one if that failed. */
  #routes: FeatureRoutes | undefined

  constructor({ parts, rooms }: ServerNode) {
    this.#parts = parts
    this.#rooms = rooms
    this.http = this.#routedNode()
  }

  publish(
    key: string,
    payload: unknown,
    { id, traceparent = this.#parts.tracer?.active, ephemeral }: PublishOptions,
  ): MaybePromise<PublishResult> {
    const draft = new ProcessDraft().fill({ key, payload, id, traceparent, ephemeral })
    return andThen(this.#rooms.publisher.publish(this.#rooms.author, draft, draft.isBinary), resultOf)
  }

  publishBatch(batch: readonly BatchMessage[]): MaybePromise<readonly PublishResult[]> {
    const draft = new ProcessDraft()
    const accepted = this.#rooms.publisher.publishAll(this.#rooms.author, batch.length, (index) =>
      draft.fill(batch[index] as BatchMessage),
    )
    return andThen(accepted, (accepted) => accepted.map(resultOf))
  }

  history(key: string, query: HistoryQuery): MaybePromise<HistoryResult> {
    return readHistory(this.#rooms.broker, key, query, this.#parts.options)
  }

  #routedNode(): RoutedNode {
    return {
      name: this.#parts.name,
      revocations: this.#rooms.features.cluster.revocations,
      publisher: this.#rooms.publisher,
      authorOf: (actor, isGone) => requestAuthor(actor, this.#limitsOf(actor), this.#rooms.pendingByCaller, isGone),
      refused: (actor, action, code, target) => this.#rooms.refusals.add(actor, action, code, target),
      operated: (actor, action, target) => this.#parts.observer?.operated?.(actor, action, target),
      read: (range, key, reader) =>
        andThen(this.#rooms.broker.read({ ...range, view: 'texts' }, [key], reader), ({ position, ...read }) => ({
          ...read,
          position: formatPosition(position),
        })),
      routes: async () => (this.#routes ??= await routesOf(this.#rooms.features)),
      patterns: () => this.#rooms.router.routes(),
    }
  }

  stream(key: string, { meta }: StreamOptions): Promise<StreamWriter> {
    return this.#rooms.features.streams.begin(this.#rooms.author, key, meta, true)
  }

  async readStream(key: string): Promise<StreamContent> {
    assertKeyWords(key, this.#parts.options)
    const { features, author } = this.#rooms
    const { facts, whole, position } = await features.streams.read(key, false, author)
    const { stream: id, status, isCut = false } = facts
    const [meta, result] = [facts.meta, facts.result].map((json) =>
      json === undefined ? undefined : parseJson(json.text),
    )
    const content = typeof whole === 'object' ? { bytes: copyBytes(whole) } : { text: whole ?? '' }
    return { id, status, meta, result, isCut, position: formatPosition(position), ...content }
  }

  #limitsOf(actor: Actor): AuthorLimits {
    return isTrusted(actor) || actor.identity === undefined
      ? this.#rooms.trusted
      : this.#rooms.limits.of(actor.identity)
  }

  async request(key: string, payload: unknown, timeoutMs = DEFAULT_WITHIN_MS): Promise<unknown> {
    if (!(timeoutMs >= 1 && timeoutMs <= MAX_WITHIN_MS)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `timeoutMs is 1 to ${MAX_WITHIN_MS}` })
    }
    const { publisher, author } = this.#rooms
    const draft = new ProcessDraft().fill({ key, payload })
    const taken = await publisher.request(author, draft, draft.isBinary, Math.ceil(timeoutMs))
    const reply = await taken.reply
    if (!reply.isError) return reply.isBinary ? reply.payload : parseJson(reply.payload)
    const { code, message } = Object(parseJson(reply.payload)) as {
      readonly code?: unknown
      readonly message?: unknown
    }
    const known = typeof code === 'string' && isErrorCode(code) ? code : 'E_RESPONSE'
    throw new WebMQError(known, typeof message === 'string' ? { message } : {})
  }

  presence(key: string): MaybePromise<readonly PresenceMember[]> {
    assertKeyWords(key, this.#parts.options)
    return this.#rooms.features.presence.list(key)
  }
}

/** The last valid key: consecutive publishes often use the same key. */
let validKey: string | undefined

type Given = Pick<BatchMessage, 'key' | 'payload'> & {
  readonly [Name in keyof PublishOptions]: PublishOptions[Name] | undefined
}

/** A message that the process publishes. It may be filled again once the publisher has taken it. */
class ProcessDraft implements BatchDraft {
  key = ''
  payload: Uint8Array = new Uint8Array()
  isBinary = false
  messageId: string | undefined
  trace: string | undefined
  ephemeral: boolean | undefined

  /** @throws {WebMQError} `E_KEY_INVALID`, `E_PAYLOAD_INVALID`, `E_MESSAGE_INVALID`. */
  fill({ key, payload, id, traceparent, ephemeral }: Given): this {
    this.key = assertedKey(key)
    if (id !== undefined && !isMessageId(id)) throw new WebMQError('E_MESSAGE_INVALID', { detail: 'message id' })
    this.isBinary = payload instanceof Uint8Array
    // For small texts `Buffer.from` takes a quarter of the time of a TextEncoder.
    this.payload = payload instanceof Uint8Array ? payload : Buffer.from(encodeJson(payload))
    this.messageId = id
    this.trace = traceparent
    this.ephemeral = ephemeral
    return this
  }
}

function assertedKey(key: string): string {
  if (key !== validKey) {
    validateKey(key)
    validKey = key
  }
  return key
}
