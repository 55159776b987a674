import { type ErrorCode, WebMQError } from '../../protocol/errors.js'
import { bytesOf, type Frame } from './frame.js'
import type { Port } from './port.js'

export interface SessionContext {
  /** Bytes that may wait for the tab. Beyond them it is closed with 4008, and resumes from its positions. */
  readonly maxTabBytes: number
  /** Whether the connection to the server has no room for more. */
  isFull(): boolean
  onFrame(session: Session, frame: Frame): void
  /** The tab has gone, was closed, or reads too slowly. Called once. */
  onClosed(session: Session, code: number): void
}

/** Close code of a slow consumer, as the server's. */
const SLOW_CONSUMER = 4008

/** Time until a full connection is looked at again. */
const FULL_MS = 100

/** The hub's side of one client in one tab. */
export class Session {
  readonly #port: Port
  readonly #context: SessionContext
  /** Bytes that the tab has not handled yet. */
  #waitingBytes = 0
  /** Bytes that the tab is not told of yet, because the connection is full: its `bufferedAmount` stays. */
  #unreportedBytes = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false
  /** The id of the `auth` that waits for the link. */
  authId: string | undefined
  /** Its requests that wait for answers. */
  requestCount = 0

  constructor(port: Port, context: SessionContext) {
    this.#port = port
    this.#context = context
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Takes over the port: the tab has said hello. */
  begin(): void {
    this.#port.onmessage = (message) => {
      switch (message[0]) {
        case 'frame':
          this.#context.onFrame(this, message[1])
          this.#take(bytesOf(message[1]))
          return
        case 'taken':
          this.#waitingBytes -= message[1]
          return
        case 'ping':
          this.#port.post(['pong'])
          return
        case 'close':
          this.#end(message[1])
      }
    }
  }

  send(frame: Frame): void {
    if (this.#isClosed) return
    this.#waitingBytes += bytesOf(frame)
    if (this.#waitingBytes > this.#context.maxTabBytes) this.close(SLOW_CONSUMER, 'the tab reads too slowly')
    else this.#port.post(['frame', frame])
  }

  /** Answers a request that the hub does not pass on. */
  refuse(id: string, code: ErrorCode, detail: string): void {
    const { message, retryable, docs } = new WebMQError(code, { detail })
    this.send(`error ${id} ${code}\n${JSON.stringify({ message, retryable, docs })}`)
  }

  /** Ends it, after everything that was sent. */
  close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#port.post(['close', code, reason])
    this.#end(code)
  }

  #take(bytes: number): void {
    this.#unreportedBytes += bytes
    if (this.#isClosed || this.#timer !== undefined) return
    if (this.#context.isFull()) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.#take(0)
      }, FULL_MS)
    } else {
      this.#port.post(['taken', this.#unreportedBytes])
      this.#unreportedBytes = 0
    }
  }

  #end(code: number): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#port.close()
    this.#context.onClosed(this, code)
  }
}
