import { checkKey } from '../../core/checks.js'
import type { ClientCore, ClientPart } from '../../core/client-part.js'
import { callSafely } from '../../core/events/call-safely.js'
import { isCount, rangeOf } from '../../core/listening/range.js'
import { partOf } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import type { Message } from '../../core/types.js'
import { encodeHistory } from '../../protocol/encode-client.js'
import { WebMQError } from '../../protocol/errors.js'
import type { HistoryOptions, HistoryResult } from './types.js'

interface Read {
  encode(id: string): string
  settle(answer: Answer | WebMQError): void
}

/** The answer to a read, with the JSON that the server may have added. */
interface Answer extends HistoryResult<unknown> {
  readonly result: unknown
}

/** Reads of the log by key. After a lost connection a read is sent again, until its time is over. */
class HistoryReads implements ClientPart {
  readonly #core: ClientCore
  readonly #reads = new Set<Read>()

  constructor(core: ClientCore) {
    this.#core = core
  }

  /** Implements `history`. */
  async read(key: string, options: HistoryOptions = {}): Promise<HistoryResult<unknown>> {
    const { result: _, ...read } = await this.ask(`history ${key}`, encoderOf(key, options))
    return read
  }

  /** Asks for messages of the log. @param what It is named in the error of a read without an answer. */
  async ask(what: string, encode: Read['encode']): Promise<Answer> {
    const { sender, options: clientOptions } = this.#core
    const { ackTimeoutMs, maxMessages } = clientOptions
    const closedBy = this.#core.closedBy()
    if (closedBy) throw closedBy
    if (this.#reads.size >= maxMessages) {
      throw new WebMQError('E_QUEUE_FULL', { detail: `${maxMessages} history reads wait` })
    }
    return new Promise((resolve, reject) => {
      const read: Read = {
        encode,
        settle: (result) => {
          clearTimeout(timer)
          this.#reads.delete(read)
          if (result instanceof WebMQError) reject(result)
          else resolve(result)
        },
      }
      const timer = setTimeout(() => read.settle(new WebMQError('E_TIMEOUT', { detail: what })), ackTimeoutMs)
      this.#reads.add(read)
      if (sender.isLive) this.#ask(read)
    })
  }

  up(): void {
    for (const read of this.#reads) this.#ask(read)
  }

  close(error: WebMQError): void {
    for (const read of this.#reads) read.settle(error)
  }

  #ask(read: Read): void {
    const { requests, replays } = this.#core
    requests.send(read.encode, (answer) => {
      if (answer instanceof WebMQError) {
        if (answer.code !== 'E_DISCONNECTED') read.settle(answer)
        return
      }
      const messages: Message<unknown>[] = []
      const { position, gap, more = false, result } = answer
      const deliver = (message: Message<unknown>) => {
        // A server may go on when the caller waits no more.
        if (!this.#reads.has(read)) return
        callSafely(
          () => messages.push((!message.stream && this.#core.accept?.(message)) || message),
          (error) => this.#core.report({ error, key: message.key }),
        )
      }
      replays.expect(answer, [{ deliver }], () => read.settle({ messages, position, more, gap, result }))
    })
  }
}

export const readsOf = partOf((core) => new HistoryReads(core))

function encoderOf(key: string, options: HistoryOptions): Read['encode'] {
  const { limit = 100, since, before, rewind, reverse, meta } = options
  checkKey(key)
  if (!isCount(limit)) throw invalid(`limit ${limit}`)
  if (before !== undefined && since !== undefined) throw invalid('before and since')
  // Checked alike: a position, and not together with `rewind`.
  const start = rangeOf({ since: since ?? before, rewind })
  // A read with a start goes forward from there; without one, it returns the newest messages.
  const isForward = !reverse && (since ?? rewind) !== undefined
  const share = isForward ? { limit } : { last: limit }
  return (id) =>
    encodeHistory({
      id,
      key,
      ...(before === undefined ? start : { before }),
      ...share,
      reverse: reverse || undefined,
      meta: meta || undefined,
    })
}
