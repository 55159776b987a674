import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'

export interface BodyLimits {
  /** Time from the request head to the last byte of the body. */
  readonly timeoutMs: number
  /** Bytes of all bodies that are being read or handled. */
  readonly maxTotalBytes: number
}

/** A larger body is used in a turn of the event loop of its own: it may take milliseconds, and others come between. */
const SHARED_TURN_BYTES = 16_384

const MAX_DISCARDED_BYTES = 16 * 1_048_576
const MAX_DISCARD_MS = 5_000

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
   *   large, `E_DISCONNECTED` when the client has gone. The connection then ends after the answer.
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
      if (request.headers.expect !== undefined) response.writeContinue()
      const body = await this.#collect(request, maxBytes, held)
      if (body.length > SHARED_TURN_BYTES) {
        this.#lastTurn = this.#lastTurn.then(() => nextTurn())
        await this.#lastTurn
      }
      return await use(body)
    } catch (error) {
      // The rest of the body is not read.
      if (!request.complete) response.shouldKeepAlive = false
      throw error
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

/**
 * Reads what is left of a body that was refused, within bounds: a connection that ends before its client has sent all takes the
 * answer along.
 */
export function discardBody(request: IncomingMessage): Promise<void> {
  // Its client waits to be told to send it.
  if (request.complete || request.headers.expect !== undefined) return Promise.resolve()
  return new Promise((resolve) => {
    let byteCount = 0
    const take = (chunk: Buffer) => {
      byteCount += chunk.length
      if (byteCount > MAX_DISCARDED_BYTES) done()
    }
    const done = () => {
      clearTimeout(timer)
      request.off('data', take).off('end', done).off('close', done)
      resolve()
    }
    const timer = setTimeout(done, MAX_DISCARD_MS)
    request.on('data', take).on('end', done).on('close', done).resume()
  })
}

function tooLarge(maxBytes: number): WebMQError {
  return new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `a body of at most ${maxBytes} bytes` })
}

/** Whether a body follows the head of a request. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}
