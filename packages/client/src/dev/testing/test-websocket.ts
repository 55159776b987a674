import type { WebSocketConstructor, WebSocketLike } from '../../core/client-options.js'

/** The server's end of a socket in memory. */
export interface ServerEnd {
  send(data: string | Uint8Array): void
  close(code: number, reason?: string): void
}

/** The server's handlers of a socket in memory. */
export interface ServerSide {
  onReceive(data: Uint8Array, isBinary: boolean): void
  onClosed(code: number): void
}

/** Accepts or refuses a new socket; `undefined` refuses it, like a server that is down. */
export type Accept = (socket: ServerEnd, url: string, protocols: readonly string[]) => ServerSide | undefined

/** RFC 6455 §7.4.1: no close frame was received. */
const ABNORMAL_CLOSURE = 1006

/**
 * Makes a WebSocket class whose sockets end in this process. It has the part of a WebSocket that the client uses.
 * Everything arrives in order, in a later microtask, so tests need not advance fake timers.
 */
export function createTestWebSocket(accept: Accept): WebSocketConstructor {
  return class TestWebSocket implements WebSocketLike {
    binaryType = 'blob'
    readonly bufferedAmount = 0
    onopen: ((event: never) => void) | null = null
    onmessage: ((event: never) => void) | null = null
    onerror: ((event: never) => void) | null = null
    onclose: ((event: never) => void) | null = null
    #server: ServerSide | undefined
    #isClosed = false
    /** The network has failed: messages on their way are lost. */
    #isCut = false

    constructor(url: string, protocols: string[]) {
      queueMicrotask(() => {
        if (this.#isClosed) return
        const end: ServerEnd = {
          send: (data) => this.#later(() => this.onmessage?.({ data: wireCopy(data) } as never)),
          close: (code, reason = '') => {
            this.#isCut = code === ABNORMAL_CLOSURE
            queueMicrotask(() => this.#end(code, reason))
          },
        }
        // The server's first message must not arrive before `open`.
        this.#later(() => this.onopen?.({} as never))
        this.#server = accept(end, url, protocols)
        if (!this.#server) this.#end(ABNORMAL_CLOSURE, '')
      })
    }

    send(data: string | Uint8Array): void {
      const isBinary = typeof data !== 'string'
      const bytes = isBinary ? data.slice() : new TextEncoder().encode(data)
      this.#later(() => this.#server?.onReceive(bytes, isBinary))
    }

    close(code = 1005, reason = ''): void {
      queueMicrotask(() => this.#end(code, reason))
    }

    #later(deliver: () => void): void {
      queueMicrotask(() => {
        if (!this.#isClosed && !this.#isCut) deliver()
      })
    }

    #end(code: number, reason: string): void {
      if (this.#isClosed) return
      this.#isClosed = true
      this.#server?.onClosed(code)
      this.onclose?.({ code, reason } as never)
    }
  }
}

function wireCopy(data: string | Uint8Array): string | ArrayBuffer {
  return typeof data === 'string' ? data : new Uint8Array(data).buffer
}
