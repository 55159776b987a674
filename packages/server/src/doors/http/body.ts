import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import { askForBody } from '../../kernel/base/answer-early.js'
import { PIECE_OVERHEAD_BYTES, PIECES_PER_TURN } from './body-flow.js'

export interface BodyLimits {
  /** Time from the request head to the last byte of the body. */
  readonly timeoutMs: number
  /** Bytes of all bodies of clients that are being read or handled; of those of operators, as many again. */
  readonly maxTotalBytes: number
}

/** Whose body it is. */
export interface BodySender {
  /** Under which name its bodies count together; `undefined`: an operator's. */
  readonly client: string | undefined
  /** Pays for bytes as they arrive. */
  readonly charge: (byteCount: number) => void
}

/** A larger body is used in a turn of the event loop of its own: it may take milliseconds, and others come between. */
const SHARED_TURN_BYTES = 16_384
/**
 * A client may hold this share of what is free then. So one holds at most a fifth of all, and many leave room for the small bodies of
 * others.
 */
export const FREE_SHARE = 1 / 4

/** Reads the bodies of requests within bounds of size, time and memory. */
export class Bodies {
  readonly #limits: BodyLimits
  readonly #heldByClient = new Map<string, number>()
  #clientBytes = 0
  #operatorBytes = 0
  /** Resolves in the turn of the last large body. */
  #lastTurn = Promise.resolve()

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /**
   * Reads a body, passes it on, and counts it until `use` has settled.
   * @throws {WebMQError} `E_PAYLOAD_TOO_LARGE`, `E_MESSAGE_TIMEOUT`, `E_RATE_LIMIT` when the client's share of all
   *   bodies is used up, `E_DISCONNECTED` when it has gone. The caller then calls `answerEarly`.
   */
  async read<T>(
    request: IncomingMessage,
    response: ServerResponse,
    sender: BodySender,
    maxBytes: number,
    use: (body: Buffer) => Promise<T>,
  ): Promise<T> {
    const held = { ...sender, bytes: 0 }
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
      this.#hold(held, -held.bytes)
    }
  }

  /** Counts bytes. @returns Whether there is room for them. */
  #hold(held: Held, byteCount: number): boolean {
    const { maxTotalBytes } = this.#limits
    held.bytes += byteCount
    if (held.client === undefined) {
      this.#operatorBytes += byteCount
      return this.#operatorBytes <= maxTotalBytes
    }
    this.#clientBytes += byteCount
    const bytes = (this.#heldByClient.get(held.client) ?? 0) + byteCount
    if (bytes > 0) this.#heldByClient.set(held.client, bytes)
    else this.#heldByClient.delete(held.client)
    return bytes <= FREE_SHARE * (maxTotalBytes - this.#clientBytes)
  }

  #collect(request: IncomingMessage, maxBytes: number, held: Held): Promise<Buffer> {
    const { timeoutMs } = this.#limits
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let length = 0
      let isSettled = false
      const settle = (error: WebMQError | undefined) => {
        isSettled = true
        clearTimeout(timer)
        request.off('data', take).off('end', end).off('close', gone).off('error', gone)
        if (error === undefined) return resolve(Buffer.concat(chunks, length))
        // Reading on would let a client send for nothing.
        request.pause()
        reject(error)
      }
      const take = (chunk: Buffer) => {
        length += chunk.length
        const byteCount = chunk.length + PIECE_OVERHEAD_BYTES
        held.charge(byteCount)
        const hasRoom = this.#hold(held, byteCount)
        if (length > maxBytes) return settle(tooLarge(maxBytes))
        if (!hasRoom) {
          return settle(
            new WebMQError('E_RATE_LIMIT', { detail: 'too many bodies of requests of this client at once' }),
          )
        }
        if (chunks.push(chunk) % PIECES_PER_TURN > 0) return
        request.pause()
        setImmediate(() => {
          if (!isSettled) request.resume()
        })
      }
      const end = () => settle(undefined)
      const gone = () => settle(new WebMQError('E_DISCONNECTED', { detail: 'before the body was complete' }))
      const timer = setTimeout(() => settle(new WebMQError('E_MESSAGE_TIMEOUT')), timeoutMs)
      request.on('data', take).on('end', end).on('close', gone).on('error', gone)
    })
  }
}

/** What a body holds, with an overhead for each piece. */
interface Held extends BodySender {
  bytes: number
}

function tooLarge(maxBytes: number): WebMQError {
  return new WebMQError('E_PAYLOAD_TOO_LARGE', { detail: `a body of at most ${maxBytes} bytes` })
}
