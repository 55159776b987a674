import type { AttemptRecord, MessageRecord, PublisherRecord, Received } from '../judging/record.js'
import { type ActorOptions, Reconnecting } from './actor.js'
import type { Connection } from './connection.js'

export interface PublisherOptions extends ActorOptions {
  /** It publishes to one after the other, in order; logged and unlogged ones alike. */
  readonly keys: readonly string[]
  /** Publishes that wait for an answer at the same time. Default 32. */
  readonly maxInFlight?: number
  /** Messages that are sent in one turn. Default 1. */
  readonly burstCount?: number
  /** Pause between two bursts. Default 10. */
  readonly everyMs?: number
  /** Bounds of the size of a payload. Default 100 to 100. */
  readonly payloadBytes?: readonly [min: number, max: number]
  /** Share of messages with `noecho`. Default 0. */
  readonly noechoShare?: number
  /** Share of messages that are published on two nodes at once, with one id. Default 0. */
  readonly twinShare?: number
  /** Share of messages that are published once more, on another node, after their `ok`. Default 0. */
  readonly againShare?: number
  /** Bounds of the time from the `ok` to that. Default 0 to 0. */
  readonly againAfterMs?: readonly [min: number, max: number]
  /** An answer that takes longer ends the connection. Default 10,000: longer than a node waits for its broker. */
  readonly answerTimeoutMs?: number
}

const PING_INTERVAL_MS = 500
const PONG_TIMEOUT_MS = 5_000
/** Between a refusal and the next try. */
export const RETRY_DELAY_MS = 150
/** `{"id":"","pad":""}` */
const EMPTY_PAYLOAD_BYTES = 18
const DEFAULT_PAYLOAD_BYTES = [100, 100] as const

/**
 * Publishes numbered messages until every one is answered, over connections that end. What was not answered is published
 * again, in its order and with its ids, on another node.
 */
export class Publisher {
  readonly record: PublisherRecord
  readonly #options: Required<Omit<PublisherOptions, keyof ActorOptions>> & ActorOptions
  readonly #main: Reconnecting
  /** To another node, for what is published twice. */
  readonly #second: Reconnecting
  /** To be published, in order: again after the end of a connection or a refusal. */
  readonly #queue: MessageRecord[] = []
  readonly #inFlight = new Map<MessageRecord, AttemptRecord>()
  /** Attempts on the second connection. Nobody waits for them but a twin. */
  readonly #onSecond = new Map<AttemptRecord, MessageRecord>()
  /** To be published once more from a time on. */
  readonly #again: { readonly message: MessageRecord; readonly fromMs: number }[] = []
  /** A message that is published on two nodes goes alone: else a later one could overtake it [P-7.7]. */
  #twin: MessageRecord | undefined
  #refusedCount = 0
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: PublisherOptions) {
    const defaults = { maxInFlight: 32, burstCount: 1, everyMs: 10, payloadBytes: DEFAULT_PAYLOAD_BYTES }
    const shares = { noechoShare: 0, twinShare: 0, againShare: 0, againAfterMs: [0, 0] as const }
    this.#options = { ...defaults, ...shares, answerTimeoutMs: 10_000, ...options }
    this.record = { name: options.name, messages: [], echoes: [] }
    options.record.publishers.push(this.record)
    const patience = {
      pingIntervalMs: PING_INTERVAL_MS,
      pongTimeoutMs: PONG_TIMEOUT_MS,
      answerTimeoutMs: this.#options.answerTimeoutMs,
    }
    const onMain = {
      opened: () => {
        this.#listen()
        this.#send()
      },
      message: ({ id }: Received) => this.#received(id),
      ended: () => this.#mainEnded(),
    }
    this.#main = new Reconnecting(this.#options, patience, onMain)
    const chooseNode = () => options.chooseNode(this.#mainNode)
    const onSecond = { opened: () => this.#send(), ended: () => this.#secondEnded() }
    this.#second = new Reconnecting({ ...this.#options, chooseNode }, patience, onSecond)
  }

  /** Begins to publish. */
  start(): void {
    const { everyMs, twinShare, againShare } = this.#options
    this.#timer = setInterval(() => {
      this.#burst()
      this.#publishAgain()
    }, everyMs)
    this.#main.start()
    if (twinShare > 0 || againShare > 0) this.#second.start()
  }

  /** Publishes nothing new, and nothing once more. */
  pause(): void {
    clearInterval(this.#timer)
  }

  /** Whether every message has been answered with `ok`, or with an error that is not retryable. */
  get isSettled(): boolean {
    return (
      this.#queue.length === 0 && this.#inFlight.size === 0 && this.#onSecond.size === 0 && this.#refusedCount === 0
    )
  }

  /** Ends its connection without a close frame; it goes on on another node. */
  cut(): void {
    this.#main.cut()
  }

  /** Does not read for some time. */
  stall(forMs: number): void {
    this.#main.stall(forMs)
  }

  /** Closes its connections. What was not answered stays `unanswered`. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.pause()
    this.#main.stop()
    this.#second.stop()
  }

  get #mainNode(): string | undefined {
    return this.#main.open?.record.node
  }

  /** What `noecho` leaves out, somebody must have asked for. */
  #listen(): void {
    const { noechoShare, keys } = this.#options
    // A listen that is refused shows nothing.
    const handlers = { ok: () => undefined, refused: () => undefined }
    if (noechoShare > 0) for (const key of keys) this.#main.open?.request('listen', key, handlers)
  }

  #received(id: string): void {
    const { name, nowMs } = this.#options
    if (id.startsWith(`${idOf(name)}-`)) this.record.echoes.push({ connection: this.#main.number, atMs: nowMs(), id })
  }

  #burst(): void {
    const { maxInFlight, burstCount } = this.#options
    for (let count = 0; count < burstCount; count++) {
      if (this.#main.open === undefined || this.#inFlight.size + this.#queue.length >= maxInFlight) break
      this.#queue.push(this.#create())
    }
    this.#send()
  }

  #create(): MessageRecord {
    const message = createMessage(this.#options, this.record.messages.length)
    this.record.messages.push(message)
    return message
  }

  #send(): void {
    for (;;) {
      const connection = this.#main.open
      const [message] = this.#queue
      if (this.#isStopped || connection === undefined || message === undefined) return
      if (this.#twin !== undefined || this.#inFlight.size >= this.#options.maxInFlight) return
      const second = this.#second.open
      const isTwin = second !== undefined && message.attempts.length === 0 && this.#isChosen(message, 'twinShare')
      if (isTwin && this.#inFlight.size > 0) return
      this.#queue.shift()
      this.#publishOnMain(connection, message)
      if (isTwin) {
        this.#twin = message
        this.#publishOnSecond(second, message)
      }
    }
  }

  /** By the number of the message, so that asking twice gives the same answer. */
  #isChosen(message: MessageRecord, share: 'twinShare' | 'againShare'): boolean {
    const every = 1 / this.#options[share]
    return Number.isFinite(every) && message.sequence % Math.round(every) === 0
  }

  #publishOnMain(connection: Connection, message: MessageRecord): void {
    const attempt = this.#publish(connection, message, (isSettled) => {
      this.#inFlight.delete(message)
      if (isSettled) this.#answered(message)
      else this.#retryLater(message)
      this.#send()
    })
    this.#inFlight.set(message, attempt)
  }

  #publishOnSecond(connection: Connection, message: MessageRecord): void {
    const attempt = this.#publish(connection, message, () => {
      this.#onSecond.delete(attempt)
      this.#endTwin()
      this.#send()
    })
    this.#onSecond.set(attempt, message)
  }

  #publish(connection: Connection, message: MessageRecord, settled: (isSettled: boolean) => void): AttemptRecord {
    const { nowMs } = this.#options
    const { id, key, isNoecho, attempts } = message
    const attempt: AttemptRecord = {
      connection: connection.record.number,
      sentAtMs: nowMs(),
      outcome: 'pending',
    }
    attempts.push(attempt)
    connection.request('publish', `${key} id=${id}${isNoecho ? ' noecho' : ''}\n${payloadOf(message)}`, {
      ok: ({ position }, isDuplicate) => {
        const settledAtMs = nowMs()
        Object.assign(attempt, {
          outcome: 'ok',
          isDuplicate,
          settledAtMs,
          ...(position === undefined ? {} : { position }),
        })
        settled(true)
      },
      refused: (code, isRetryable) => {
        Object.assign(attempt, { outcome: 'refused', code, isRetryable, settledAtMs: nowMs() })
        settled(!isRetryable)
      },
    })
    return attempt
  }

  #answered(message: MessageRecord): void {
    this.#endTwin()
    if (message.attempts.length > 1 || !this.#isChosen(message, 'againShare')) return
    const { nowMs, random, againAfterMs } = this.#options
    const [min, max] = againAfterMs
    this.#again.push({ message, fromMs: nowMs() + min + random() * (max - min) })
  }

  /** Due messages wait for the second connection, over a restart of its node. */
  #publishAgain(): void {
    const now = this.#options.nowMs()
    for (const due of this.#again.filter(({ fromMs }) => fromMs <= now)) {
      const second = this.#second.open
      if (second === undefined) return
      this.#again.splice(this.#again.indexOf(due), 1)
      this.#publishOnSecond(second, due.message)
    }
  }

  /** Nothing else is published before both answers of a twin are there, or will not come. */
  #endTwin(): void {
    const twin = this.#twin
    if (twin === undefined || this.#inFlight.has(twin) || this.#queue.includes(twin)) return
    if (![...this.#onSecond.values()].includes(twin)) this.#twin = undefined
  }

  #retryLater(message: MessageRecord): void {
    this.#refusedCount++
    // It goes alone now, so that the others need not wait. Its place is that of the retry.
    if (this.#twin === message) this.#twin = undefined
    setTimeout(() => {
      this.#refusedCount--
      this.#queue.unshift(message)
      this.#send()
    }, RETRY_DELAY_MS)
  }

  #mainEnded(): void {
    const messages = [...this.#inFlight.keys()]
    for (const attempt of this.#inFlight.values()) {
      Object.assign(attempt, { outcome: 'unanswered', settledAtMs: this.#options.nowMs() })
    }
    this.#inFlight.clear()
    this.#twin = undefined
    this.#queue.unshift(...messages)
    this.#queue.sort((one, other) => one.sequence - other.sequence)
  }

  #secondEnded(): void {
    for (const attempt of this.#onSecond.keys()) {
      Object.assign(attempt, { outcome: 'unanswered', settledAtMs: this.#options.nowMs() })
    }
    this.#onSecond.clear()
    this.#endTwin()
    this.#send()
  }
}

/** The message of that number. */
export function createMessage(
  { keys, name, payloadBytes = DEFAULT_PAYLOAD_BYTES, noechoShare = 0, random }: PublisherOptions,
  sequence: number,
): MessageRecord {
  const [min, max] = payloadBytes
  const id = `${idOf(name)}-${sequence}`
  return {
    id,
    sequence,
    key: keys[sequence % keys.length] ?? '',
    payloadBytes: Math.max(EMPTY_PAYLOAD_BYTES + id.length, Math.floor(min + random() * (max - min + 1))),
    isNoecho: random() < noechoShare,
    attempts: [],
  }
}

export function payloadOf({ id, payloadBytes }: MessageRecord): string {
  return `{"id":"${id}","pad":"${'x'.repeat(payloadBytes - EMPTY_PAYLOAD_BYTES - id.length)}"}`
}

/** What the ids of a publisher begin with. */
export function idOf(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_')
}
