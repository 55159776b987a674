import type { Reader, ReaderOptions } from '../../../packages/check/src/actors/reader.js'
import type { PageRecord, ReadRecord } from '../../../packages/check/src/judging/record.js'
import { Door } from './door.js'
import { CommandError, DrivenClient, type DrivenOptions, receivedOf } from './drive.js'

/** Reads the newest messages of its keys by the `history` of a client in another program. */
export class ClientReader implements Pick<Reader, keyof Reader> {
  readonly #options: ReaderOptions & DrivenOptions
  readonly #client: DrivenClient
  #door: Door | undefined
  #timer: NodeJS.Timeout | undefined
  #isReading = false

  constructor(options: ReaderOptions & DrivenOptions) {
    this.#options = options
    this.#client = new DrivenClient(options)
  }

  start(): void {
    this.#client.run(async () => {
      this.#door = await Door.open(this.#options)
      await this.#client.call('connect', { url: this.#door.url })
      this.#timer = setInterval(() => {
        if (!this.#isReading) this.#client.run(() => this.#read())
      }, this.#options.everyMs ?? 200)
    })
  }

  cut(): void {
    this.#door?.cut()
  }

  stall(forMs: number): void {
    this.#door?.stall(forMs, this.#options.nowMs)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#client.stop()
    this.#door?.close()
  }

  async #read(): Promise<void> {
    const { keys, name, record, nowMs, random, maxCount = 400 } = this.#options
    const key = keys[Math.floor(random() * keys.length)] ?? ''
    const asked = { last: 1 + Math.floor(random() * maxCount) }
    const page: PageRecord = { connection: this.#door?.number ?? -1, askedAtMs: nowMs(), asked, messages: [] }
    const read: ReadRecord = { owner: name, verb: 'history', pattern: key, asked, pages: [page] }
    record.reads.push(read)
    this.#isReading = true
    try {
      const { payloads, positions, position, gap, more } = await this.#client.call('history', { key, ...asked })
      const places = positions as readonly unknown[]
      for (const [index, payload] of (payloads as readonly unknown[]).entries()) {
        page.messages.push(receivedOf(key, payload, places[index]))
      }
      page.answer = {
        position: typeof position === 'string' ? position : undefined,
        isRecovered: false,
        gap: typeof gap === 'string' ? gap : undefined,
        replayed: page.messages.length,
        isMore: more === true,
      }
    } catch (error) {
      if (this.#client.isStopped) return
      if (!(error instanceof CommandError)) throw error
      // Retryable ones are what a server or a connection has just now.
      if (!error.isRetryable) page.code = error.code
    } finally {
      page.settledAtMs = nowMs()
      this.#isReading = false
    }
  }
}
