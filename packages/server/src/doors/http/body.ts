import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import { askForBody } from '../../kernel/base/answer-early.js'

export interface BodyLimits {
  /** Time from the request head to the last byte of the body. */
  readonly timeoutMs: number
  /** Bytes of all bodies that are being read or handled. */
  readonly maxTotalBytes: number
}

/** A larger body is used in a turn of the event loop of its own: it may take milliseconds, and others come between. */
const SHARED_TURN_BYTES = 16_384

/** Reads the bodies of requests within bounds of size, time and memory. */
export class Bodies {
  readonly #limits: BodyLimits
  #totalBytes = 0
  /** Resolves in the turn of the last large body. */
  #lastTurn = Promise.resolve()

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  /**
   * Reads a body, passes it on, and counts it until `use` has settled.
   * @throws {WebMQError} `E_PAYLOAD_TOO_LARGE`, `E_MESSAGE_TIMEOUT`, `E_RATE_LIMIT` when all bodies together are too
   *   large, `E_DISCONNECTED` when the client has gone. The caller then calls `answerEarly`.
   */
  async read<T>(
    request: IncomingMessage,
    response: ServerResponse,
    maxBytes: number,
    use: (body: Buffer) => Promise<T>,
  ): Promise<T> {
    const held = { bytes: 0 }
    try {
      const announced = Number(request.headers['content-length'] ?? 0)
      if (announced > maxBytes) throw tooLarge(maxBytes)
      askForBody(request, response)
      const body = await this.#collect(request, maxBytes, held)
      if (body.length > SHARED_TURN_BYTES) {
        this.#lastTurn = this.#lastTurn.then(() => nextTurn())
        await this.#lastTurn
      }
      return await use(body)
    } finally {
      this.#totalBytes -= held.bytes
    }
  }

  #collect(request: IncomingMessage, maxBytes: number, held: { bytes: number }): Promise<Buffer> {
    const { timeoutMs, maxTotalBytes } = this.#limits
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      const settle = (error: WebMQError | undefined) => {
        clearTimeout(timer)
        request.off('data', take).off('end', end).off('close', gone).off('error', gone)
        if (error === undefined) return resolve(Buffer.concat(chunks, held.bytes))
        // Reading on would let a client send for nothing.
        request.pause()
        reject(error)
      }
      const take = (chunk: Buffer) => {
        held.bytes += chunk.length
        this.#totalBytes += chunk.length
        if (held.bytes > maxBytes) return settle(tooLarge(maxBytes))
        if (this.#totalBytes > maxTotalBytes) {
          return settle(new WebMQError('E_RATE_LIMIT', { detail: 'too many bodies of requests at once' }))
        }
        chunks.push(chunk)
      }
      const end = () => settle(undefined)
      const gone = () => settle(new WebMQError('E_DISCONNECTED', { detail: 'before the body was complete' }))
      const timer = setTimeout(() => settle(new WebMQError('E_MESSAGE_TIMEOUT')), timeoutMs)
      request.on('data', take).on('end', end).on('close', gone).on('error', gone)
    })
  }
}

function tooLarge(maxBytes: number): WebMQError {
  return new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `a body of at most ${maxBytes} bytes` })
}
