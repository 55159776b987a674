import { checkKey } from '../../core/checks.js'
import type { WebMQClient } from '../../core/client.js'
import type { ClientCore } from '../../core/client-part.js'
import { Emitter } from '../../core/events/emitter.js'
import { partOf } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import { decodePayload, encodePayload, wireBytes } from '../../core/publishing/payload.js'
import { randomName } from '../../core/publishing/random-name.js'
import type { PublishResult } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { isMessageId } from '../../protocol/fields.js'
import { Sender } from './sender.js'
import type { OutboxStore, StoredMessage } from './store.js'
import { Turn } from './turn.js'
import type { OutboxEvents, OutboxOptions, Stored } from './types.js'

/** The options with every default filled in. */
const DEFAULTS = { maxMessages: 1_000, maxBytes: 1_048_576, maxAgeMs: 86_400_000 }

/** What tabs with the same outbox tell each other. */
type News =
  | readonly ['added']
  | readonly ['sent', key: string, id: string, result: PublishResult]
  | readonly ['failed', key: string, id: string, payload: unknown, error: readonly [WebMQError['code'], string]]

/** The environment of an outbox; tests give their own. */
export interface OutboxEnvironment {
  readonly store: OutboxStore
  readonly locks: Pick<LockManager, 'request'> | undefined
  readonly channel: Pick<BroadcastChannel, 'postMessage' | 'close' | 'onmessage'> | undefined
  nowMs(): number
}

type Client = WebMQClient

const coreOf = partOf((core) => ({ core }))

/** The answer to all calls that have added one message. */
class Confirmation {
  resolve: (result: PublishResult) => void = () => undefined
  reject: (error: WebMQError) => void = () => undefined
  readonly confirmed = new Promise<PublishResult>((resolve, reject) => {
    this.resolve = resolve
    this.reject = reject
  })

  constructor() {
    // The promise is optional: the event `failed` reports the same.
    this.confirmed.catch(() => undefined)
  }
}

/** Implements an outbox over a store. */
export class LiveOutbox {
  readonly #core: ClientCore
  readonly #environment: OutboxEnvironment
  readonly #limits: typeof DEFAULTS
  readonly #sender: Sender
  readonly #turn: Turn
  readonly #emitter: Emitter<OutboxEvents>
  readonly #name = randomName()
  /** Of messages that this page has added, by key and id. */
  readonly #waiting = new Map<string, Confirmation>()
  readonly #ends: (() => void)[] = []
  #waitingCount = 0
  #lastId = 0
  #isClosed = false

  constructor(client: Client, options: OutboxOptions, name: string, environment: OutboxEnvironment) {
    this.#limits = { ...DEFAULTS }
    for (const limit of Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]) {
      this.#limits[limit] = options[limit] ?? DEFAULTS[limit]
      if (!(this.#limits[limit] >= 0)) throw invalid(limit)
    }
    const { afterWindow = 'report' } = options
    if (!/^(report|send)$/.test(afterWindow)) throw invalid('afterWindow')
    this.#environment = environment
    this.#emitter = new Emitter((error) => this.#core.report({ error }))
    this.#core = coreOf(client).core
    const { store } = environment
    this.#sender = new Sender({
      store,
      maxAgeMs: this.#limits.maxAgeMs,
      afterWindow,
      backoff: this.#core.options,
      publish: async ({ id, key, payload }) =>
        client.publish(key, this.#decode(payload), { id, whenOffline: 'reject' }),
      dedupeWindowMs: () => {
        const { dedupeWindowMs = 0, dedupeMaxIds = 0 } = client.status.limits ?? {}
        return dedupeMaxIds > 0 ? dedupeWindowMs : 0
      },
      nowMs: environment.nowMs,
      onSent: ({ key, id }, result) => this.#tell(['sent', key, id, result]),
      onFailed: (message, error) => this.#failed(message, error),
      onError: (error) => this.#core.report({ error }),
    })
    this.#turn = new Turn(name, environment.locks, {
      onBegin: () => this.#sender.start(),
      onEnd: () => this.#sender.stop(),
    })
    this.#ends.push(
      client.on('status', ({ state }, previous) => {
        if (state === previous.state) return
        if (state === 'connected') this.#turn.want()
        else this.#turn.end()
      }),
    )
    if (client.state === 'connected') this.#turn.want()
    if (environment.channel) environment.channel.onmessage = ({ data }: MessageEvent<News>) => this.#hear(data)
    this.#recount()
  }

  get waitingCount(): number {
    return this.#waitingCount
  }

  async publish(
    key: string,
    payload: unknown,
    { id = this.#createId() }: { readonly id?: string } = {},
  ): Promise<Stored> {
    if (this.#isClosed) throw new WebMQError('E_CLOSED', { detail: 'outbox' })
    checkKey(key)
    if (!isMessageId(id)) throw invalid(`id ${id}`)
    const wire = encodePayload(payload, this.#core.options.codec)
    const { store, nowMs } = this.#environment
    const name = `${key} ${id}`
    const earlier = this.#waiting.get(name)
    const confirmation = earlier ?? new Confirmation()
    // Another tab may send the message before this one learns that it is stored.
    this.#waiting.set(name, confirmation)
    try {
      await store.add({ id, key, payload: wire, bytes: wireBytes(wire), createdAtMs: nowMs() }, this.#limits)
    } catch (error) {
      if (!earlier) this.#waiting.delete(name)
      throw error
    }
    this.#tell(['added'])
    this.#sender.wake()
    return { id, confirmed: confirmation.confirmed }
  }

  on<E extends keyof OutboxEvents>(event: E, handler: (event: OutboxEvents[E]) => unknown): () => void {
    return this.#emitter.on(event, handler)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const end of this.#ends) end()
    this.#turn.close()
    this.#environment.channel?.close()
    this.#environment.store.close()
    const error = new WebMQError('E_CLOSED', { detail: 'outbox; the message is kept' })
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #createId(): string {
    return `${this.#name}-${++this.#lastId}`
  }

  /** @throws {WebMQError} `E_PAYLOAD_INVALID`: the page that stored it had another codec. */
  #decode(payload: StoredMessage['payload']): unknown {
    try {
      return decodePayload(payload, this.#core.options.codec)
    } catch (cause) {
      throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'the codec of this page does not read it', cause })
    }
  }

  #failed({ key, id, payload }: StoredMessage, error: WebMQError): void {
    let value: unknown = payload
    try {
      value = this.#decode(payload)
    } catch {
      // The app gets it as it was stored; `error` says why, or the message failed for another reason.
    }
    this.#tell(['failed', key, id, value, [error.code, error.message]])
  }

  /** Tells the other tabs, and this one. */
  #tell(news: News): void {
    this.#handle(news, true)
    // Last: it throws for a payload that cannot be cloned.
    if (!this.#isClosed) this.#environment.channel?.postMessage(news)
  }

  #hear(news: News): void {
    if (news[0] === 'added') this.#sender.wake()
    this.#handle(news, false)
  }

  #handle(news: News, isOwn: boolean): void {
    this.#recount()
    if (news[0] === 'added') return
    const [, key, id] = news
    const waiting = this.#waiting.get(`${key} ${id}`)
    this.#waiting.delete(`${key} ${id}`)
    if (news[0] === 'sent') {
      waiting?.resolve(news[3])
      this.#emitter.emit('sent', { key, result: news[3] })
      return
    }
    const [code, message] = news[4]
    const error = new WebMQError(code, { message })
    waiting?.reject(error)
    const isHandled = this.#emitter.emit('failed', { key, id, payload: news[3], error })
    if (!isHandled && isOwn) this.#core.report({ error, key })
  }

  #recount(): void {
    this.#environment.store.count().then(
      (count) => {
        if (count === this.#waitingCount || this.#isClosed) return
        this.#waitingCount = count
        this.#emitter.emit('change', { waitingCount: count })
      },
      (error: unknown) => this.#isClosed || this.#core.report({ error }),
    )
  }
}
