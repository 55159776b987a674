import type { WebSocketConstructor, WebSocketLike } from '../../core/client-options.js'

/** A frame as sockets give and take it. */
export type Frame = string | ArrayBuffer | Uint8Array

/** Sees, and may replace, what goes through a {@link WatchedSocket}. */
export interface SocketWatcher {
  /** Whether new sockets fail, as without a network. */
  readonly isOffline: boolean
  opened(socket: WatchedSocket): void
  /** Returns what is sent instead; `undefined` for nothing. */
  sending(socket: WatchedSocket, frame: Frame): Frame | undefined
  /** Returns what is received instead; `undefined` for nothing. */
  receiving(socket: WatchedSocket, frame: Frame): Frame | undefined
  closed(socket: WatchedSocket): void
}

/** RFC 6455 §7.4.1: no close frame was received. */
const ABNORMAL_CLOSURE = 1006

/** A WebSocket whose frames a {@link SocketWatcher} sees, and which it may break. */
export class WatchedSocket implements WebSocketLike {
  onopen: ((event: never) => void) | null = null
  onmessage: ((event: never) => void) | null = null
  onerror: ((event: never) => void) | null = null
  onclose: ((event: never) => void) | null = null
  readonly #watcher: SocketWatcher
  readonly #socket: WebSocketLike | undefined
  #isClosed = false

  constructor(watcher: SocketWatcher, base: WebSocketConstructor, url: string, protocols: string[]) {
    this.#watcher = watcher
    if (watcher.isOffline) {
      queueMicrotask(() => this.end(ABNORMAL_CLOSURE))
      return
    }
    const socket = new base(url, protocols)
    this.#socket = socket
    socket.onopen = (event) => this.onopen?.(event)
    socket.onmessage = (event) => this.#receive((event as { readonly data: Frame }).data)
    socket.onerror = (event) => this.onerror?.(event)
    socket.onclose = ({ code, reason }: { code: number; reason: string }) => this.end(code, reason)
    watcher.opened(this)
  }

  get binaryType(): string {
    return this.#socket?.binaryType ?? 'arraybuffer'
  }

  set binaryType(type: string) {
    if (this.#socket) this.#socket.binaryType = type
  }

  get bufferedAmount(): number {
    return this.#socket?.bufferedAmount ?? 0
  }

  send(data: never): void {
    const frame = this.#watcher.sending(this, data)
    if (frame !== undefined) this.#socket?.send(frame as never)
  }

  close(code?: number, reason?: string): void {
    this.#socket?.close(code, reason)
  }

  /** Passes a frame to the client, as if it came from the server. */
  deliver(data: Frame): void {
    if (!this.#isClosed) this.onmessage?.({ data } as never)
  }

  /** Ends it at once, as a lost network or the server would. */
  end(code = ABNORMAL_CLOSURE, reason = ''): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#watcher.closed(this)
    if (this.#socket) {
      this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null
      this.#socket.close()
    }
    this.onclose?.({ code, reason } as never)
  }

  #receive(data: Frame): void {
    const frame = this.#watcher.receiving(this, data)
    if (frame !== undefined) this.deliver(frame)
  }
}
