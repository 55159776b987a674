import type { ReadRecord, Selection } from '../judging/record.js'
import { type ActorOptions, Reconnecting } from './actor.js'
import { readPages } from './read-pages.js'

export interface ReaderOptions extends ActorOptions {
  readonly keys: readonly string[]
  /** Pause between two reads. Default 200. */
  readonly everyMs?: number
  /** Bound of `last` and `limit`. Default 400. */
  readonly maxCount?: number
}

const PATIENCE = { pingIntervalMs: 500, pongTimeoutMs: 5_000, answerTimeoutMs: 15_000 }
/** How far back `rewind` goes at most. */
const MAX_REWIND_MS = 3_000

/** Reads the history of its keys, with every combination of options, and follows pages to their end. */
export class Reader {
  readonly #options: ReaderOptions
  readonly #connection: Reconnecting
  /** Positions that it was given, to read from. */
  readonly #positions: string[] = []
  #timer: NodeJS.Timeout | undefined
  #isReading = false

  constructor(options: ReaderOptions) {
    this.#options = options
    const ended = () => {
      this.#isReading = false
    }
    this.#connection = new Reconnecting(options, PATIENCE, { opened: () => this.#read(), ended })
  }

  /** Begins to read. */
  start(): void {
    this.#connection.start()
    this.#timer = setInterval(() => this.#read(), this.#options.everyMs ?? 200)
  }

  /** Ends its connection without a close frame. */
  cut(): void {
    this.#connection.cut()
  }

  /** Does not read for some time. */
  stall(forMs: number): void {
    this.#connection.stall(forMs)
  }

  /** Closes its connection. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#connection.stop()
  }

  #read(): void {
    const connection = this.#connection.open
    if (connection === undefined || this.#isReading) return
    const { keys, name, record, nowMs, random } = this.#options
    const pattern = keys[Math.floor(random() * keys.length)] ?? ''
    const read: ReadRecord = { owner: name, verb: 'history', pattern, asked: this.#select(), pages: [] }
    record.reads.push(read)
    this.#isReading = true
    readPages(connection, read, nowMs, () => {
      this.#isReading = false
      for (const { answer, messages } of read.pages) {
        for (const position of [answer?.position, messages[0]?.position]) {
          if (position !== undefined) this.#positions.push(position)
        }
      }
    })
  }

  #select(): Selection {
    const { random, maxCount = 400 } = this.#options
    const among = (count: number) => Math.floor(random() * count)
    const since = this.#positions[among(this.#positions.length)]
    const count = 1 + among(maxCount)
    const from = [{}, { rewindMs: 1 + among(MAX_REWIND_MS) }, since === undefined ? {} : { since }][among(3)]
    const number = [{}, { last: count }, { limit: count }][among(3)]
    return { ...from, ...number, ...(random() < 0.3 ? { isReverse: true } : {}) }
  }
}
