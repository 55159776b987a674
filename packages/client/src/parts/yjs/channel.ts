import type { WebMQClient } from '../../core/client.js'
import type { PublishOptions } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { decodeChunk, encodeFrame, type Frame, type Joiner, type Kind } from './frames.js'

/** Bytes of chunks that may be on their way at once: a fraction of what the client and the server let wait. */
const MAX_BYTES_IN_FLIGHT = 524_288
/** A codec may put its own header around bytes. */
const CODEC_BYTES = 16

/** Publishes and reads frames. */
export class Channel {
  readonly #client: WebMQClient

  constructor(client: WebMQClient) {
    this.#client = client
  }

  /**
   * Publishes a frame, in several messages if it is large. Resolves once the broker has all of them.
   * @param keyOf Returns the key of a chunk.
   * @throws {WebMQError} `E_OFFLINE`, `E_PAYLOAD_TOO_LARGE`, and those of `publish`.
   */
  async publish(frame: Frame, keyOf: (index: number) => string, options: PublishOptions = {}): Promise<void> {
    const { limits } = this.#client.status
    if (this.#client.state !== 'connected' || !limits) throw new WebMQError('E_OFFLINE')
    const maxBytes = limits.maxPayloadBytes - CODEC_BYTES
    const chunks = encodeFrame(frame, maxBytes)
    if (!chunks) throw new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `${frame.bytes.length} bytes` })
    const perRound = Math.max(1, Math.floor(MAX_BYTES_IN_FLIGHT / maxBytes))
    for (let first = 0; first < chunks.length; first += perRound) {
      const round = chunks.slice(first, first + perRound)
      await Promise.all(round.map((chunk, index) => this.#client.publish(keyOf(first + index), chunk, options)))
    }
  }

  /**
   * Reads a payload. Returns its frame if that is complete now.
   * @throws {WebMQError} `E_PAYLOAD_INVALID` if it is none of these kinds.
   */
  read(payload: unknown, joiner: Joiner, kinds: readonly Kind[]): Frame | undefined {
    const chunk = decodeChunk(payload)
    if (!chunk || !kinds.includes(chunk.kind))
      throw new WebMQError('E_PAYLOAD_INVALID', { detail: 'no frame of a document' })
    return joiner.join(chunk)
  }
}
