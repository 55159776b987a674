import * as Y from 'yjs'
import type { WebMQClient } from '../../core/client.js'
import { isSeen } from '../../core/listening/position.js'
import type { Message, Subscription } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import type { HistoryResult } from '../history/index.js'
import type { Channel } from './channel.js'
import { Joiner } from './frames.js'
import { Knowledge } from './knowledge.js'
import type { Snapshots } from './snapshots.js'

/** Everything that a log may still hold: a hundred years. */
const EVERYTHING_MS = 3_155_760_000_000
const PAGE_MESSAGES = 500
/** Pause after a page without messages: its server may say for ever that there is more. */
const EMPTY_PAGE_MS = 500

/** What is known after the snapshots and the log were read. */
export interface ReadResult {
  /** Whether the log may lack something that others have. */
  readonly hasHole: boolean
  /** What the log has, for as long as the document may have more; `undefined` if there is no log. */
  readonly log: Knowledge | undefined
}

/** Collaborators of {@link LogReader}. */
export interface LogReaderContext {
  readonly client: WebMQClient
  readonly channel: Channel
  readonly snapshots: Snapshots
  readonly doc: Y.Doc
  readonly key: string
  readonly maxBytes: number
  /** Origin of the updates that it applies. */
  readonly origin: unknown
  history(key: string, options: { since?: string; rewind?: number; limit: number }): Promise<HistoryResult<unknown>>
  /** It begins to read: at first, and whenever messages may be missing. */
  onReading(): void
  onRead(result: ReadResult): void
  /** Reading has failed. */
  onFailed(error: unknown): void
  report(error: unknown): void
}

/** Applies the updates of the log to the document. After a gap it reads the snapshots, and the log after them. */
export class LogReader {
  readonly #context: LogReaderContext
  readonly #subscription: Subscription
  #joiner: Joiner
  #position = ''
  /** The log's knowledge while it is compared with the document. */
  #log: Knowledge | undefined
  #readCount = 0
  #isReading = false

  constructor(context: LogReaderContext) {
    this.#context = context
    this.#joiner = new Joiner(context.maxBytes)
    this.#subscription = context.client.listen(context.key, (_, message) => this.#take(message))
    let isFirst = true
    this.#subscription.on('gap', () => this.#gap())
    this.#subscription.on('ready', ({ position }) => {
      this.#advance(position)
      if (isFirst) this.read()
      isFirst = false
    })
  }

  /** The document has everything up to here; empty if there is no log. */
  get position(): string {
    return this.#position
  }

  /** Resolves when the server lets it listen. */
  get ready(): Promise<unknown> {
    return this.#subscription.ready
  }

  get isReading(): boolean {
    return this.#isReading
  }

  /** Reads the snapshots and the log after them. */
  read(): void {
    const number = ++this.#readCount
    const isCurrent = () => number === this.#readCount
    this.#isReading = true
    this.#log = new Knowledge()
    this.#context.onReading()
    this.#readAll(isCurrent).then(
      (hasHole) => {
        if (hasHole === undefined) return
        this.#isReading = false
        this.#context.onRead({ hasHole, log: this.#log })
      },
      (error) => {
        if (!isCurrent()) return
        this.#isReading = false
        this.#context.onFailed(error)
      },
    )
  }

  /** The comparison of the log with the document is over. */
  compared(): void {
    this.#log = undefined
  }

  stop(): Promise<void> {
    this.#readCount++
    return this.#subscription.close()
  }

  #gap(): void {
    // What is missing may be parts of these.
    this.#joiner = new Joiner(this.#context.maxBytes)
    this.read()
  }

  /** @returns Whether there is a hole; `undefined` if another read has begun. */
  async #readAll(isCurrent: () => boolean): Promise<boolean | undefined> {
    const { snapshots } = this.#context
    const found = await snapshots.read()
    if (!isCurrent()) return undefined
    for (const { update } of found) this.#apply(update)
    return await this.#readLog(this.#newestOf(found.map(({ position }) => position)), isCurrent)
  }

  /** The newest of these positions that the log can continue: those of another log have no order with its own. */
  #newestOf(positions: readonly string[]): string | undefined {
    const isOfLog = (position: string) => isSeen(position, this.#position) || isSeen(this.#position, position)
    let newest: string | undefined
    for (const position of positions) if (isOfLog(position) && !isSeen(position, newest)) newest = position
    return newest
  }

  async #readLog(start: string | undefined, isCurrent: () => boolean): Promise<boolean | undefined> {
    const { history, key, maxBytes } = this.#context
    const joiner = new Joiner(maxBytes)
    // Without a snapshot nobody knows whether the log once had more.
    let hasHole = start === undefined
    let since = start
    for (;;) {
      let page: HistoryResult<unknown>
      try {
        page = await history(key, { limit: PAGE_MESSAGES, ...(since ? { since } : { rewind: EVERYTHING_MS }) })
      } catch (error) {
        if (!(error instanceof WebMQError && error.code === 'E_UNSUPPORTED')) throw error
        if (!isCurrent()) return undefined
        this.#log = undefined
        return true
      }
      if (!isCurrent()) return undefined
      hasHole ||= page.gap !== undefined
      for (const { payload } of page.messages) this.#read(payload, joiner)
      if (!page.more || page.position === since) {
        if (joiner.bytes === 0) this.#advance(page.position)
        return hasHole
      }
      since = page.position
      if (page.messages.length === 0) await new Promise((resolve) => setTimeout(resolve, EMPTY_PAGE_MS))
    }
  }

  #take({ payload, position }: Message<unknown>): void {
    this.#read(payload, this.#joiner)
    // Whoever continues from a position needs every part of what comes after it.
    if (this.#joiner.bytes === 0) this.#advance(position)
  }

  #read(payload: unknown, joiner: Joiner): void {
    try {
      const frame = this.#context.channel.read(payload, joiner, ['update'])
      if (frame) this.#apply(frame.bytes)
    } catch (error) {
      this.#context.report(error)
    }
  }

  #apply(update: Uint8Array): void {
    const { doc, origin, report } = this.#context
    try {
      Y.applyUpdate(doc, update, origin)
      this.#log?.add(update)
    } catch (cause) {
      report(new WebMQError('E_PAYLOAD_INVALID', { detail: 'no update of Yjs', cause }))
    }
  }

  #advance(position: string | undefined): void {
    if (position !== undefined && !isSeen(position, this.#position)) this.#position = position
  }
}
