import type { WebSocketLike } from '../../core/client-options.js'
import { bytesOf, type Frame } from './frame.js'
import { ABNORMAL, GONE, type Port } from './port.js'

/** Pings without an answer after which the hub counts as gone. One may be late: the page itself may have slept. */
const MAX_UNANSWERED = 2

/** The way of a socket to its hub. */
export interface TabSocketContext {
  /** Half of the time in which the hub must answer. */
  readonly pingMs: number
  /** Name of the lock that this page holds. */
  readonly lock: string
  /** Called once: the socket has ended. @param isSilent Whether the hub does not answer. */
  onEnd(isSilent: boolean): void
}

/** A WebSocket for the client whose frames go through the hub. */
export class TabSocket implements WebSocketLike {
  binaryType = 'blob'
  bufferedAmount = 0
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: never) => void) | null = null
  onerror: ((event: never) => void) | null = null
  onclose: ((event: never) => void) | null = null
  readonly #url: string
  readonly #context: TabSocketContext
  #port: Port | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  /** What the client sends when it learns that the socket is open: its token. */
  #first: Frame[] | undefined
  #unansweredCount = 0
  #isGreeted = false
  #isEnded = false

  constructor(url: string, context: TabSocketContext) {
    this.#url = url
    this.#context = context
    this.#timer = setInterval(() => this.#check(), context.pingMs)
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Whether a hub has answered. */
  get isGreeted(): boolean {
    return this.#isGreeted
  }

  /** Talks to a hub through this port; replaces a port of which no hub has answered. */
  attach(port: Port): void {
    this.#port?.close()
    this.#port = port
    port.onmessage = (message) => {
      this.#unansweredCount = 0
      switch (message[0]) {
        case 'open':
          if (!this.#isGreeted) this.#greet(port)
          return
        case 'frame':
          this.onmessage?.({ data: message[1] } as never)
          if (!this.#isEnded) port.post(['taken', bytesOf(message[1])])
          return
        case 'taken':
          this.bufferedAmount -= message[1]
          return
        case 'close':
          this.end(message[1], message[2])
      }
    }
  }

  send(data: string | Uint8Array): void {
    const frame = typeof data === 'string' ? data : (data.slice().buffer as ArrayBuffer)
    if (this.#first) {
      this.#first.push(frame)
      return
    }
    this.bufferedAmount += bytesOf(frame)
    this.#port?.post(['frame', frame])
  }

  close(code = 1000): void {
    if (this.#isEnded) return
    this.#port?.post(['close', code, ''])
    this.#end(false)
  }

  /** The page goes away. The hub learns it at once, and the client reconnects if the page comes back. */
  leave(reason: string): void {
    this.#port?.post(['close', GONE, ''])
    this.end(ABNORMAL, reason)
  }

  /** The connection has ended. */
  end(code: number, reason: string, isSilent = false): void {
    if (this.#isEnded) return
    this.#end(isSilent)
    this.onclose?.({ code, reason } as never)
  }

  #greet(port: Port): void {
    this.#isGreeted = true
    this.#first = []
    this.onopen?.({} as never)
    const [auth] = this.#first
    this.#first = undefined
    if (!this.#isEnded) port.post(['hello', this.#url, auth as string | undefined, this.#context.lock])
  }

  #check(): void {
    if (this.#unansweredCount >= MAX_UNANSWERED) this.end(ABNORMAL, 'the tab with the connection does not answer', true)
    else {
      this.#unansweredCount++
      this.#port?.post(['ping'])
    }
  }

  #end(isSilent: boolean): void {
    this.#isEnded = true
    clearInterval(this.#timer)
    this.#port?.close()
    this.#context.onEnd(isSilent)
  }
}
