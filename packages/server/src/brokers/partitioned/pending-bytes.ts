import { WebMQError } from 'webmq-client/protocol'
import type { OutboundMessage } from '../../ports/broker.js'
import { isPromise, type MaybePromise } from '../../ports/maybe-promise.js'

/** Estimated memory of a message besides its payload, as in each instance. */
const MESSAGE_OVERHEAD_BYTES = 256

/** One bound of the bytes that wait for the broker, over all partitions: each instance has the same bound of its own. */
export class PendingBytes {
  readonly #maxBytes: number
  #byteCount = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Counts the messages until the call is answered.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE` when too much waits already.
   */
  during<T>(messages: readonly OutboundMessage[], call: () => MaybePromise<T>): MaybePromise<T> {
    const byteCount = messages.reduce((sum, { payload }) => sum + payload.length + MESSAGE_OVERHEAD_BYTES, 0)
    // One batch larger than the bound is refused by its instance, or waits alone.
    if (this.#byteCount > 0 && this.#byteCount + byteCount > this.#maxBytes)
      throw new WebMQError('E_BROKER_UNAVAILABLE', { detail: 'too many bytes wait for the broker' })
    this.#byteCount += byteCount
    const end = () => {
      this.#byteCount -= byteCount
    }
    try {
      const answer = call()
      if (isPromise(answer)) return answer.finally(end)
      end()
      return answer
    } catch (error) {
      end()
      throw error
    }
  }
}
