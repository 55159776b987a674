import type { Sender } from '../connection/sender.js'
import { invalid } from '../options.js'
import { validateKey, WebMQError } from '../protocol/index.js'
import type { HistoryOptions, HistoryResult, Message } from '../types.js'
import { isCount, rangeOf } from './duration.js'
import type { Replays } from './replays.js'
import type { Request, Requests } from './requests.js'

/** Options and collaborators of {@link HistoryReads}. */
export interface HistoryContext {
  readonly sender: Sender
  readonly requests: Requests
  readonly replays: Replays
  readonly timeoutMs: number
  /** Limit of the reads that wait for a connection or an answer. */
  readonly maxReads: number
}

interface Read {
  readonly request: Request
  settle(result: HistoryResult<unknown> | WebMQError): void
}

/** Reads of the log by key. After a lost connection a read is sent again, until its time is over. */
export class HistoryReads {
  readonly #context: HistoryContext
  readonly #reads = new Set<Read>()

  constructor(context: HistoryContext) {
    this.#context = context
  }

  /** Implements `client.history`. */
  async read(key: string, options: HistoryOptions = {}): Promise<HistoryResult<unknown>> {
    const { sender, timeoutMs, maxReads } = this.#context
    const request = requestOf(key, options)
    if (this.#reads.size >= maxReads) throw new WebMQError('E_QUEUE_FULL', { detail: `${maxReads} history reads wait` })
    return new Promise((resolve, reject) => {
      const read: Read = {
        request,
        settle: (result) => {
          clearTimeout(timer)
          this.#reads.delete(read)
          if (result instanceof WebMQError) reject(result)
          else resolve(result)
        },
      }
      const timer = setTimeout(() => read.settle(new WebMQError('E_TIMEOUT', { detail: `history ${key}` })), timeoutMs)
      this.#reads.add(read)
      if (sender.isLive) this.#ask(read)
    })
  }

  /** A connection is live. */
  up(): void {
    for (const read of this.#reads) this.#ask(read)
  }

  close(error: WebMQError): void {
    for (const read of this.#reads) read.settle(error)
  }

  #ask(read: Read): void {
    const { requests, replays } = this.#context
    requests.send(read.request, (answer) => {
      if (answer instanceof WebMQError) {
        if (answer.code !== 'E_DISCONNECTED') read.settle(answer)
        return
      }
      const messages: Message<unknown>[] = []
      const { position, gap, more = false } = answer
      replays.expect(answer, [{ deliver: (message) => messages.push(message) }], () =>
        read.settle({ messages, position, more, gap }),
      )
    })
  }
}

function requestOf(key: string, { limit = 100, since, rewind, reverse }: HistoryOptions): Request {
  validateKey(key)
  if (!isCount(limit)) throw invalid(`limit ${limit}`)
  const start = rangeOf({ since, rewind })
  // A read with a start goes forward from there; without one, it returns the newest messages.
  const isForward = !reverse && (since ?? rewind) !== undefined
  const share = isForward ? { limit } : { last: limit }
  return { verb: 'history', key, ...start, ...share, reverse: reverse || undefined }
}
