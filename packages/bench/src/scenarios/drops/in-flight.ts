import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQClient, WebMQError } from 'webmq-client'
import { request, respond } from 'webmq-client/parts'
import { openStream, readStream } from 'webmq-client/stream'
import { plainWebSocket } from '../../generator/bench-client.js'

/** Texts that are being written, each with one reader, and clients that ask, one question after the other. */
const TEXT_COUNT = 20
const ASKER_COUNT = 20
const RESPONDER_COUNT = 4
const WORD_MS = 100
/** A question is on its way for most of the time. */
const ANSWER_MS = 300
const ANSWER_TIMEOUT_MS = 30_000
const END_TIMEOUT_MS = 60_000

export interface InFlightFigures {
  /** Words that were written to all texts. */
  readonly wordCount: number
  /** Texts that their readers do not have word for word. */
  readonly brokenTextCount: number
  readonly answeredCount: number
  /** Questions that were refused or lost, and the asker was told so. */
  readonly unansweredCount: number
  /** Questions that were handled more than once. */
  readonly twiceCount: number
  readonly examples: readonly string[]
}

/** Streams and requests of WebMQ over connections that move. */
export class InFlight {
  readonly #clients: WebMQClient[]
  readonly #handled = new Map<string, number>()
  readonly #examples: string[] = []
  /** Errors by their code: of questions, and of clients. */
  readonly #errors = new Map<string, number>()
  #work: Promise<unknown> = Promise.resolve()
  #isOver = false
  #wordCount = 0
  #brokenTextCount = 0
  #answeredCount = 0
  #unansweredCount = 0

  /** @param urls Taken in turn. */
  constructor(urls: readonly string[]) {
    const count = 2 * TEXT_COUNT + ASKER_COUNT + RESPONDER_COUNT
    this.#clients = Array.from(
      { length: count },
      (_, index) => new WebMQClient({ url: urls[index % urls.length] ?? '', WebSocket: plainWebSocket(undefined) }),
    )
    // A responder is told that its reply came too late.
    for (const client of this.#clients) client.on('error', ({ error }) => this.#count('client', error))
  }

  /** Resolves when all are connected and all responders are known. */
  async start(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.connect()))
    const left = this.#clients.values()
    const take = () => left.next().value as WebMQClient
    const responders = Array.from({ length: RESPONDER_COUNT }, () =>
      respond('ask.*', (id) => this.#answer(String(id)), { client: take() }),
    )
    await Promise.all(responders.map(({ ready }) => ready))
    const texts = Array.from({ length: TEXT_COUNT }, (_, text) => this.#write(`text.${text}`, take(), take()))
    const askers = Array.from({ length: ASKER_COUNT }, (_, asker) => this.#ask(asker, take()))
    this.#work = Promise.all([...texts, ...askers])
    this.#work.catch(() => undefined) // `finish` tells it.
  }

  async finish(): Promise<InFlightFigures> {
    this.#isOver = true
    await this.#work
    return {
      wordCount: this.#wordCount,
      brokenTextCount: this.#brokenTextCount,
      answeredCount: this.#answeredCount,
      unansweredCount: this.#unansweredCount,
      twiceCount: [...this.#handled.values()].filter((count) => count > 1).length,
      examples: [...this.#examples, ...[...this.#errors].map(([what, count]) => `${what}: ${count} times`)],
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients.map((client) => client.close({ flushMs: 0 })))
  }

  async #write(key: string, writing: WebMQClient, reading: WebMQClient): Promise<void> {
    const writer = await openStream(key, { client: writing })
    const reader = readStream(key, { client: reading })
    const read = Promise.race([reader.text(), sleep(END_TIMEOUT_MS, 'nothing', { ref: false })])
    let written = ''
    try {
      for (let number = 1; !this.#isOver; number++) {
        const word = `${number} `
        await writer.append(word)
        written += word
        this.#wordCount++
        await sleep(WORD_MS)
      }
      await writer.end()
      this.#compare(key, written, await read)
    } catch (error) {
      this.#broken(`${key} after ${written.length} characters: ${String(error)}`)
    }
  }

  #compare(key: string, written: string, read: string): void {
    if (read === written) return
    const at = [...written].findIndex((character, index) => read[index] !== character)
    const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 10), at + 20))
    this.#broken(`${key}: written ${around(written)}, read ${around(read)}`)
  }

  #broken(example: string): void {
    this.#brokenTextCount++
    this.#examples.push(example)
  }

  async #ask(asker: number, client: WebMQClient): Promise<void> {
    for (let number = 1; !this.#isOver; number++) {
      const id = `${asker}-${number}`
      try {
        const answer = await request(`ask.${asker}`, id, { client, timeoutMs: ANSWER_TIMEOUT_MS })
        if (answer !== id) this.#examples.push(`question ${id} has the answer ${JSON.stringify(answer)}`)
        this.#answeredCount++
      } catch (error) {
        this.#unansweredCount++
        this.#count('question', error)
      }
    }
  }

  /** @throws what is no error of WebMQ. */
  #count(whose: string, error: unknown): void {
    if (!(error instanceof WebMQError)) throw error
    const what = `${whose}, ${error.code}`
    this.#errors.set(what, (this.#errors.get(what) ?? 0) + 1)
  }

  async #answer(id: string): Promise<string> {
    this.#handled.set(id, (this.#handled.get(id) ?? 0) + 1)
    await sleep(ANSWER_MS)
    return id
  }
}
