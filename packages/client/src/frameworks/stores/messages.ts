import { checks } from '../../core/checks.js'
import type { Awaitable } from '../../core/client-options.js'
import { isSameJson } from '../../core/events/same-json.js'
import { type GivenClient, scopeOf } from '../../core/of-client.js'
import type { Message } from '../../core/types.js'
import { history } from '../../parts/history/index.js'
import { matches } from '../../protocol/matching.js'
import { type Follower, Following } from './follow.js'
import { type ListedMessage, type SentMessage, type Shower, sendingsOf } from './sending.js'
import { constantStore, type Source, type Store, sharedStore } from './store.js'

/** Options of a list of messages. */
export interface MessagesOptions<P = unknown> {
  /** Messages that the list begins with and keeps, and that `loadOlder` adds; default 100. */
  readonly limit?: number
  /** Limit of the messages of the list, however often `loadOlder` was called; default 1,000. */
  readonly maxMessages?: number
  /** Loads at most `limit` messages from before `oldest`, oldest first, for example from your database. */
  readonly loadOlder?: (oldest: Message<P> | undefined, limit: number) => Awaitable<readonly Message<P>[]>
  /** Messages come with `userId`, `timeMs` and `id`, see `listen`. Default `false`. */
  readonly meta?: boolean
  /** Time between the end of the last component with this list and that of its listen; default 1,000. */
  readonly graceMs?: number
}

/** The last messages of a pattern. */
export interface Messages<P> {
  /** Oldest first. */
  readonly messages: readonly ListedMessage<P>[]
  /** Whether messages may be missing: until the first are here, and after a gap until it is closed. */
  readonly isStale: boolean
  /** Whether `loadOlder` may find more. */
  readonly hasOlder: boolean
  /** Why the server has refused the listen, or the last `loadOlder` has failed: what yours threw. */
  readonly error: Error | undefined
  /** Adds older messages. Resolves when they are here, or `error` is set; it never rejects. */
  readonly loadOlder: () => Promise<void>
}

const LIMIT = 100
const MAX_MESSAGES = 1_000

const EMPTY: Messages<never> = {
  messages: [],
  isStale: true,
  hasOlder: false,
  error: undefined,
  loadOlder: async () => undefined,
}
const IDLE = { ...EMPTY, isStale: false }

/** The store of the last messages of `pattern`; of none if it is `null`. */
export function messagesStore(
  client: GivenClient,
  pattern: string | null,
  { graceMs, ...options }: MessagesOptions = {},
): Store<Messages<unknown>> {
  checks.part?.('useMessages', options)
  if (pattern === null) return constantStore(IDLE)
  return sharedStore(
    scopeOf(client),
    `messages ${pattern} ${JSON.stringify(options)}`,
    EMPTY,
    (changed) => new MessageList(client, pattern, options, changed),
    graceMs,
  )
}

class MessageList implements Source<Messages<unknown>>, Follower, Shower {
  readonly #client: GivenClient
  readonly #pattern: string
  readonly #options: MessagesOptions
  readonly changed: () => void
  readonly #limit: number
  #keptCount: number
  #messages: ListedMessage<unknown>[] = []
  /** What a replay has brought so far. */
  #fresh: ListedMessage<unknown>[] | undefined
  /** What has probably come back of the messages that are being sent, by their ids. */
  readonly #echoes = new Map<string, Message<unknown>>()
  #hasOlder = false
  #error: Error | undefined
  #older: Promise<void> | undefined
  readonly #following: Following

  constructor(client: GivenClient, pattern: string, options: MessagesOptions, changed: () => void) {
    this.#client = client
    this.#pattern = pattern
    this.#options = options
    this.changed = changed
    this.#limit = this.#keptCount = options.limit ?? LIMIT
    this.#following = new Following(client, pattern, { last: this.#limit, meta: options.meta ?? false }, this)
    sendingsOf(client).showers.add(this)
  }

  begin(): void {
    this.#fresh = []
  }

  deliver(message: Message<unknown>): void {
    const own = this.#messages.findIndex((one) => one.sending && isSame(one, message))
    if (own >= 0) this.#messages.splice(own, 1)
    else if (!message.replayed) this.#expectAnswer(message)
    this.#add(this.#fresh ?? this.#messages, message)
  }

  loaded(): void {
    const fresh = this.#fresh ?? []
    this.#fresh = undefined
    const first = fresh.find(({ position }) => position !== undefined)
    if (first) {
      const own = this.#messages.filter(({ sending }) => sending)
      const place = this.#messages.findIndex(({ position }) => position === first.position)
      if (place < 0) {
        this.#keptCount = this.#limit
        this.#hasOlder = fresh.length >= this.#limit && this.#mayPage
      }
      // Older messages stay if the replay goes on where they end.
      const before = this.#messages.slice(0, Math.max(0, place)).filter(({ sending }) => !sending)
      this.#messages = [...before, ...fresh, ...own]
    } else this.#messages.push(...fresh)
    this.#trim(this.#messages)
  }

  confirmed(message: SentMessage): void {
    if (!matches(this.#pattern, message.key)) return
    const echo = this.#echoes.get(message.sending.id)
    this.#echoes.delete(message.sending.id)
    const isHere = (one: Message<unknown>) =>
      one === echo ? isSame(one, message) : one.position !== undefined && isSame(one, message)
    if (!this.#messages.some(isHere) && !this.#fresh?.some(isHere)) this.#add(this.#messages, message)
    this.changed()
  }

  close(): void {
    sendingsOf(this.#client).showers.delete(this)
    this.#following.close()
  }

  read(): Messages<unknown> {
    const sending = sendingsOf(this.#client).all.filter(
      ({ key, sending }) =>
        matches(this.#pattern, key) && !(sending.state === 'pending' && this.#echoes.has(sending.id)),
    )
    return {
      messages: [...this.#messages, ...sending],
      isStale: this.#following.isStale,
      hasOlder: this.#hasOlder,
      error: this.#following.error ?? this.#error,
      loadOlder: this.#loadOlder,
    }
  }

  /** A message may come back before the answer to its publish, which alone says for sure which one it is. */
  #expectAnswer(message: Message<unknown>): void {
    const { all } = sendingsOf(this.#client)
    if (all.length === 0) this.#echoes.clear()
    const own = all.find((one) => !this.#echoes.has(one.sending.id) && isAlike(one, message))
    if (own) this.#echoes.set(own.sending.id, message)
  }

  get #mayPage(): boolean {
    return this.#options.loadOlder !== undefined || !/[*#]/.test(this.#pattern)
  }

  #add(list: ListedMessage<unknown>[], message: ListedMessage<unknown>): void {
    list.push(message)
    this.#trim(list)
  }

  #trim(list: ListedMessage<unknown>[]): void {
    const excess = list.length - this.#keptCount
    if (excess <= 0) return
    list.splice(0, excess)
    this.#hasOlder = this.#mayPage
  }

  readonly #loadOlder = (): Promise<void> => {
    this.#older ??= this.#readOlder().finally(() => {
      this.#older = undefined
      this.changed()
    })
    return this.#older
  }

  async #readHistory(
    limit: number,
  ): Promise<{ readonly messages: readonly Message<unknown>[]; readonly more: boolean }> {
    const before = this.#messages.find(({ position }) => position !== undefined)?.position
    if (before === undefined) return { messages: [], more: false }
    const { meta = false } = this.#options
    return history(this.#pattern, { client: this.#client, before, limit, meta })
  }

  async #readOlder(): Promise<void> {
    const { loadOlder, maxMessages = MAX_MESSAGES } = this.#options
    const [oldest] = this.#messages
    const count = Math.min(this.#limit, maxMessages - this.#keptCount)
    if (!this.#hasOlder || count <= 0) return
    // From now on, so that live messages do not push out those before which it reads.
    this.#keptCount += count
    try {
      const own = await loadOlder?.(oldest, count)
      const { messages, more } = own ? { messages: own, more: false } : await this.#readHistory(count)
      // A replay has replaced the list meanwhile.
      if (this.#messages[0] !== oldest) return
      this.#messages.unshift(...messages)
      this.#hasOlder = (more || messages.length >= count) && this.#keptCount < maxMessages
      this.#error = undefined
    } catch (error) {
      this.#keptCount -= count
      this.#error = error as Error
    }
  }
}

/** Whether a message of this client is that which came back. Without a log, nothing but its content says so. */
function isSame(own: Message<unknown>, message: Message<unknown>): boolean {
  return own.position === message.position && (own.position !== undefined || isAlike(own, message))
}

function isAlike(own: Message<unknown>, message: Message<unknown>): boolean {
  return own.key === message.key && isSameJson(own.payload, message.payload)
}
