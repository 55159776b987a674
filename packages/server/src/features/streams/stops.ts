import { WebMQError } from 'webmq-client/protocol'
import type { Author } from '../../kernel/publishing/author.js'
import { WRITERS } from '../../kernel/publishing/requests.js'
import type { Streams } from './streams.js'
import type { StreamWatch } from './watch.js'
import type { StreamLimits } from './watches.js'
import { assertStop, ProcessWriter } from './writer.js'

/** Messages of its writer that a stop may lose the race against. */
const MAX_STOP_TRIES = 64

/** Makes a function of this process a responder. Resolves to a function that ends it. */
export type JoinWriters = (
  name: { readonly kind: 'respond'; readonly group: string; readonly pattern: string },
  asked: (request: unknown) => Promise<unknown>,
) => Promise<() => void>

export interface StopsContext {
  readonly streams: Pick<Streams, 'write' | 'watches'>
  /** The process itself. */
  readonly author: Author
  readonly limits: Pick<StreamLimits, 'streamLeaseMs'>
  readonly join: JoinWriters
}

/** Streams that this node writes, for its process or for a request, and who asks them to stop. */
export class StreamStops {
  readonly #context: StopsContext
  readonly #writers = new Set<ProcessWriter>()

  constructor(context: StopsContext) {
    this.#context = context
  }

  /** Begins a stream as its writer. @param isStoppable It answers requests at the key [P-18.7]. */
  async begin(author: Author, key: string, meta: unknown, isStoppable: boolean): Promise<ProcessWriter> {
    const { streams, limits, join } = this.#context
    const { maxPayloadBytes } = author.limits
    const writer = new ProcessWriter(key, { streams, author, leaseMs: limits.streamLeaseMs, maxPayloadBytes })
    await writer.start(meta)
    this.#writers.add(writer)
    writer.leave = () => this.#writers.delete(writer)
    if (!isStoppable) return writer
    try {
      const leave = await join(nameOf(key), (asked) => writer.asked(asked))
      // It may have broken meanwhile.
      if (!this.#writers.has(writer)) leave()
      writer.leave = () => {
        this.#writers.delete(writer)
        leave()
      }
    } catch (error) {
      await writer.fail(error)
      throw error
    }
    return writer
  }

  /**
   * Answers requests to stop a stream that single requests write, and that has begun on this node, until it is over: a stop ends it
   * in the log, and its next message is refused.
   */
  async answer(key: string, id: string): Promise<void> {
    const { author, streams, join } = this.#context
    let stopping: Promise<unknown> = Promise.resolve()
    const leave = await join(nameOf(key), async (asked) => {
      assertStop(asked, id)
      const stop = async (watch: StreamWatch) => {
        // Its writer may take the number first.
        for (let triesLeft = MAX_STOP_TRIES; watch.fold.isActive && watch.fold.stream === id; triesLeft--) {
          if (triesLeft === 0) throw new WebMQError('E_TIMEOUT', { detail: 'its writer is faster than the stop' })
          const sequence = watch.fold.sequence + 1
          await streams.write(author, { key, stream: id, sequence, kind: 'stop', payload: '' }, false)
        }
      }
      // Its text is not needed, so nothing has to be read.
      const stopped = streams.watches.use(key, stop, author)
      stopping = Promise.allSettled([stopping, stopped])
      await stopped
      return null
    })
    // The request to stop is answered first.
    if (!streams.watches.onOver(key, id, () => void stopping.then(leave))) leave()
  }

  /** Fails the streams that this node writes: their readers need not wait for the lease. */
  async failAll(): Promise<void> {
    const error = new WebMQError('E_NOT_RUNNING')
    await Promise.allSettled([...this.#writers].map((writer) => writer.giveUp(error)))
  }
}

function nameOf(key: string): Parameters<JoinWriters>[0] {
  return { kind: 'respond', group: WRITERS, pattern: key }
}
