import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { WebMQError } from 'webmq-client/protocol'
import { answerEarly, askForBody } from '../../kernel/base/answer-early.js'

/** Idle time after which the system asks a peer whether it is still there. */
const KEEP_ALIVE_MS = 15_000
/** Memory and work of a piece beside its bytes: a body may come in pieces of one byte. Measured: 1.1 us. */
export const PIECE_OVERHEAD_BYTES = 512
/** Others come between. */
export const PIECES_PER_TURN = 512

/** The body of a request, used while it arrives. What is not taken stays in the socket, so its sender waits. */
export class BodyFlow {
  /** It is UTF-8 text; otherwise bytes. */
  readonly isText: boolean
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #hold: () => void
  #wake: () => void = () => undefined
  #lastMs = performance.now()
  /** Not more than Node reads at once, for it is paused while nobody waits for them. */
  #pieces: Buffer[] = []
  #costBytes = 0
  /** The last piece was all that may be taken in a turn of the event loop. */
  #isTurnOver = false

  /** @param hold Exempts the connection from the limits of short requests. */
  constructor(request: IncomingMessage, response: ServerResponse, isText: boolean, hold: () => void) {
    this.isText = isText
    this.#request = request
    this.#response = response
    this.#hold = hold
    request.pause().on('data', this.#take)
    for (const event of ['end', 'close', 'error']) request.on(event, this.#changed)
  }

  /** Time since something came, in milliseconds; 0 while something waits to be used. */
  get silentMs(): number {
    return this.#request.readableLength > 0 ? 0 : performance.now() - this.#lastMs
  }

  /** What the last piece costs: its bytes, with an overhead for each that its sender made of it. */
  get costBytes(): number {
    return this.#costBytes
  }

  /** The body is wanted: asks for it, and keeps the connection however long it takes. */
  open(): void {
    this.#hold()
    this.#request.socket.setKeepAlive(true, KEEP_ALIVE_MS)
    askForBody(this.#request, this.#response)
  }

  /**
   * What has arrived since the last call, as one piece; `undefined` after the last one.
   * @throws {WebMQError} `E_DISCONNECTED`, and the reason of the signal.
   */
  async next(signal: AbortSignal): Promise<Buffer | undefined> {
    const request = this.#request
    signal.addEventListener('abort', this.#changed)
    try {
      if (this.#isTurnOver) await nextTurn()
      for (;;) {
        signal.throwIfAborted()
        if (this.#pieces.length > 0) return this.#taken()
        if (request.readableEnded) return undefined
        if (request.destroyed) throw new WebMQError('E_DISCONNECTED', { detail: 'before the body was complete' })
        request.resume()
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      request.pause()
      signal.removeEventListener('abort', this.#changed)
    }
  }

  /** The answer is next, and its connection ends afterwards: it is held without limits. */
  close(): void {
    this.#request.off('data', this.#take)
    this.#response.shouldKeepAlive = false
    answerEarly(this.#request, this.#response)
  }

  readonly #take = (piece: Buffer): void => {
    if (this.#pieces.push(piece) >= PIECES_PER_TURN) this.#request.pause()
    this.#changed()
  }

  #taken(): Buffer {
    this.#lastMs = performance.now()
    const chunk = Buffer.concat(this.#pieces)
    this.#costBytes = chunk.length + this.#pieces.length * PIECE_OVERHEAD_BYTES
    this.#isTurnOver = this.#pieces.length >= PIECES_PER_TURN
    this.#pieces = []
    return chunk
  }

  readonly #changed = (): void => this.#wake()
}

/** Counts the connections that bodies keep open: a stream may end by another request while its connection stays. */
export class HeldConnections {
  readonly #counts = new Map<string, number>()

  /** Counts a connection of a client until it closes. @throws {WebMQError} `E_STREAM_LIMIT`. */
  add(client: string, maxCount: number, socket: Socket): void {
    const count = this.#counts.get(client) ?? 0
    if (count >= maxCount) throw new WebMQError('E_STREAM_LIMIT', { detail: `${maxCount} connections that write` })
    this.#counts.set(client, count + 1)
    socket.once('close', () => {
      const left = (this.#counts.get(client) ?? 0) - 1
      if (left > 0) this.#counts.set(client, left)
      else this.#counts.delete(client)
    })
  }
}
