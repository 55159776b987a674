import type { Socket } from 'node:net'
import { FrameReader, type OnFrame } from './frame-reader.js'

/** Time for the last bytes of a connection that ends. */
const MAX_END_MS = 1_000

/** Handles what comes over a {@link Wire}. */
export interface WireHandler {
  readonly frame: OnFrame
  /** Bytes have come, before their frames are handled. */
  received?(): void
  /** The socket is gone; nothing more comes. Once, and not after the handler has been taken off or has closed the wire itself. */
  closed(cause: Error): void
}

/** The other end has closed the connection. */
export class ClosedError extends Error {
  constructor() {
    super('the connection was closed')
  }
}

/** A TCP connection as frames. Who handles them changes: first the handshake, then a link. */
export class Wire {
  readonly #socket: Socket
  readonly #reader: FrameReader
  #handler: WireHandler | undefined
  #error: Error | undefined
  #onEnd: (() => void) | undefined
  /** The other end, for the log. */
  readonly remote: string

  /** @param remote Names the other end; by default its address. */
  constructor(socket: Socket, maxFrameBytes: number, remote?: string) {
    this.#socket = socket
    this.remote = remote ?? `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`
    this.#reader = new FrameReader(maxFrameBytes, (type, bytes, start, end) =>
      this.#handler?.frame(type, bytes, start, end),
    )
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.on('close', () => {
      this.#lost(this.#error ?? new ClosedError())
      this.#onEnd?.()
    })
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  set handler(handler: WireHandler | undefined) {
    this.#handler = handler
  }

  set maxFrameBytes(bytes: number) {
    this.#reader.maxFrameBytes = bytes
  }

  /** Called once, when the socket is gone, whoever has closed it. */
  set onEnd(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  /** @param written Called when the bytes are the system's, and the memory is free again; not when the socket is gone before. */
  write(bytes: Uint8Array, written?: () => void): void {
    if (written === undefined) this.#socket.write(bytes)
    else
      this.#socket.write(bytes, (error) => {
        if (error === undefined || error === null) written()
      })
  }

  /** Sends what has been written, within a bound of time, then closes; tells nobody. */
  end(): void {
    this.#detach()
    this.#socket.setTimeout(MAX_END_MS, () => this.#socket.destroy())
    this.#socket.destroySoon()
  }

  /** Takes nothing more in, and tells nothing more; to be closed by the one who asks for it. */
  mute(): void {
    this.#detach()
  }

  /** Closes at once; tells nobody. */
  destroy(): void {
    this.#detach()
    this.#socket.destroy()
  }

  /** Closes at once, and tells the handler. */
  fail(cause: Error): void {
    this.#lost(cause)
    this.destroy()
  }

  #read(chunk: Buffer): void {
    this.#handler?.received?.()
    try {
      this.#reader.push(chunk)
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #lost(cause: Error): void {
    const handler = this.#handler
    this.#detach()
    handler?.closed(cause)
  }

  #detach(): void {
    this.#handler = undefined
    this.#reader.stop()
  }
}
