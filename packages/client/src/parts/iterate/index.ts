import { checks } from '../../core/checks.js'
import type { Backlog, Receiver, ReceiverContext } from '../../core/listening/receiver.js'
import { type ClientOption, clientOf } from '../../core/of-client.js'
import { invalid } from '../../core/options.js'
import type { ListenTopic, TopicMessage, Topics } from '../../core/topics/topics.js'
import type { ListenOptions, Message, Subscription } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { type BufferOverflow, MessageBuffer } from './message-buffer.js'

export type { BufferOverflow } from './message-buffer.js'

/** Default of `bufferMaxMessages`: more than the 10,000 messages that a server replays by default. */
const BUFFER_MAX_MESSAGES = 16_384

/** Options of {@link iterate}: those of `listen`, and of the buffer. */
export interface IterateOptions extends ListenOptions {
  /** Limit of the messages that wait for the loop; default 16,384. Limits memory when it is slower than the messages. */
  readonly bufferMaxMessages?: number
  /** Default `close`: the loop throws `E_BUFFER_OVERFLOW`, so no message is lost silently. */
  readonly bufferOverflow?: BufferOverflow
}

/** The messages of a pattern, for `for await`. */
export interface Iteration<M extends Message<unknown> = Message<unknown>> extends AsyncIterable<M> {
  /** Ends, like the loop, when the client closes. */
  readonly subscription: Subscription
  /** Messages dropped because of `bufferOverflow`. */
  readonly droppedCount: number
  /** Iterates over the messages; each goes to one reader. Leaving the loop ends the listen. */
  [Symbol.asyncIterator](): AsyncIterator<M, undefined>
}

/**
 * Listens, and returns the messages for `for await (const message of iterate('orders.#'))`. They are buffered from the
 * call on. Leaving the loop ends the listen; `signal` and `close()` end the loop.
 * @throws {WebMQError} `E_PATTERN_INVALID`, `E_OPTION_INVALID`, `E_POSITION_INVALID`.
 */
export function iterate<const K extends string, T = Topics>(
  pattern: ListenTopic<T, K>,
  options: IterateOptions & ClientOption<T> = {},
): Iteration<TopicMessage<T, K>> {
  checks.part?.('iterate', options)
  const { client, bufferMaxMessages = BUFFER_MAX_MESSAGES, bufferOverflow = 'close', ...listenOptions } = options
  if (!(bufferMaxMessages >= 1)) throw invalid('bufferMaxMessages')
  if (!/^(close|drop-(old|new)est)$/.test(bufferOverflow)) throw invalid('bufferOverflow')
  const buffering = new Buffering(new MessageBuffer(bufferMaxMessages, bufferOverflow))
  clientOf(client).listen(pattern as string, buffering, listenOptions)
  return buffering as unknown as Iteration<TopicMessage<T, K>>
}

/** Buffers the messages of a subscription for its readers. */
class Buffering implements Receiver, Iteration {
  readonly isSingleUse = true
  readonly #buffer: MessageBuffer<Message<unknown>>
  #context!: ReceiverContext
  /** Position of the messages that were taken. */
  #taken: string | undefined
  droppedCount = 0

  constructor(buffer: MessageBuffer<Message<unknown>>) {
    this.#buffer = buffer
    buffer.onTaken = ({ position }) => {
      this.#taken = position ?? this.#taken
    }
  }

  get subscription(): Subscription {
    return this.#context.subscription
  }

  attach(context: ReceiverContext): void {
    this.#context = context
  }

  deliver(message: Message<unknown>): void {
    const kept = this.#buffer.push(message)
    if (kept === 'dropped') this.droppedCount++
    else if (kept === 'full') {
      this.#context.fail(new WebMQError('E_BUFFER_OVERFLOW', { detail: this.subscription.pattern }), message)
    }
  }

  close(error: WebMQError | undefined): void {
    this.#buffer.end(error)
  }

  backlog(): Backlog | undefined {
    if (this.#buffer.size === 0) return undefined
    return {
      position: this.#taken,
      whenHandled: () => this.#buffer.whenEmpty() ?? Promise.resolve(),
    }
  }

  [Symbol.asyncIterator](): AsyncIterator<Message<unknown>, undefined> {
    return {
      next: () => this.#buffer.next(),
      return: async () => {
        await this.subscription.close()
        return { done: true, value: undefined }
      },
    }
  }
}
