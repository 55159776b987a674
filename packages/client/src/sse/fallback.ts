import type { WebSocketConstructor, WebSocketLike } from '../client-options.js'
import { invalid, type ResolvedOptions, socketClassOf } from '../options.js'
import { SseSocket } from './socket.js'

/** Refused WebSockets in a row after which event streams are tried. */
const MAX_REFUSALS = 2

/** By the options of a client: WebSockets that were refused since the last one was open. */
const refusals = new WeakMap<object, number>()

/**
 * The class for a connection of a client with the option `transports`.
 * @throws {WebMQError} `E_OPTION_INVALID`
 */
export function fallbackClassOf(options: ResolvedOptions): WebSocketConstructor {
  const order = `${options.transports}`
  if (!/^(websocket(,sse)?|sse)$/.test(order)) throw invalid('transports')
  const refusedCount = refusals.get(options) ?? 0
  const usesStreams = order === 'sse' || (order !== 'websocket' && refusedCount >= MAX_REFUSALS)
  const open = (url: string, protocols: string[]): WebSocketLike =>
    usesStreams ? new SseSocket(url) : new (socketClassOf(options))(url, protocols)

  /** Notes whether the socket opens. A server that is down refuses both kinds; then it is the turn of WebSockets again. */
  return class implements WebSocketLike {
    onopen: ((event: never) => void) | null = null
    onmessage: ((event: never) => void) | null = null
    onerror: ((event: never) => void) | null = null
    onclose: ((event: never) => void) | null = null
    readonly #socket: WebSocketLike
    #isOpen = false

    constructor(url: string, protocols: string[]) {
      this.#socket = open(url, protocols)
      this.#socket.onopen = (event) => {
        this.#isOpen = true
        if (!usesStreams) refusals.set(options, 0)
        this.onopen?.(event)
      }
      this.#socket.onmessage = (event) => this.onmessage?.(event)
      this.#socket.onerror = (event) => this.onerror?.(event)
      this.#socket.onclose = (event) => {
        this.#noteEnd()
        this.onclose?.(event)
      }
    }

    get binaryType(): string {
      return this.#socket.binaryType
    }

    set binaryType(type: string) {
      this.#socket.binaryType = type
    }

    get bufferedAmount(): number {
      return this.#socket.bufferedAmount
    }

    send(data: never): void {
      this.#socket.send(data)
    }

    close(code?: number, reason?: string): void {
      this.#noteEnd()
      this.#socket.close(code, reason)
    }

    #noteEnd(): void {
      if (this.#isOpen) return
      this.#isOpen = true
      refusals.set(options, usesStreams ? 0 : refusedCount + 1)
    }
  }
}
