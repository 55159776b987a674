import type { Socket } from 'node:net'
import { FrameReader, type OnFrame } from './frame-reader.js'

/** Time to send the last bytes of a connection. */
const MAX_END_MS = 1_000

export interface WireHandler {
  readonly frame: OnFrame
  /** Bytes have arrived; their frames follow. */
  received?(): void
  /** The connection has ended. Called once, unless the handler was removed or closed the wire itself. */
  closed(cause: Error): void
}

export class ClosedError extends Error {
  constructor() {
    super('the connection was closed')
  }
}

/** A TCP connection as frames. The handler changes: first the handshake, then a link. */
export class Wire {
  readonly #socket: Socket
  readonly reader: FrameReader
  handler: WireHandler | undefined
  #error: Error | undefined
  /** Called once when the socket has closed, whichever side closed it. */
  onEnd: (() => void) | undefined
  /** The other end, for the server's log. */
  readonly remote: string

  /** @param remote Names the other end; by default its address. */
  constructor(socket: Socket, maxFrameBytes: number, remote?: string) {
    this.#socket = socket
    this.remote = remote ?? `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`
    this.reader = new FrameReader(maxFrameBytes, (type, bytes, start, end) =>
      this.handler?.frame(type, bytes, start, end),
    )
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.on('close', () => {
      this.#lost(this.#error ?? new ClosedError())
      this.onEnd?.()
    })
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  /** @param written Called when the memory may be reused; never if the socket closes first. */
  write(bytes: Uint8Array, written?: () => void): void {
    if (written === undefined) this.#socket.write(bytes)
    else
      this.#socket.write(bytes, (error) => {
        if (error === undefined || error === null) written()
      })
  }

  /** Sends what was written, within a time limit, then closes. Does not call the handler. */
  end(): void {
    this.mute()
    this.#socket.setTimeout(MAX_END_MS, () => this.#socket.destroy())
    this.#socket.destroySoon()
  }

  /** Ignores all further input and removes the handler. The caller closes the wire. */
  mute(): void {
    this.handler = undefined
    this.reader.stop()
  }

  /** Closes at once. Does not call the handler. */
  destroy(): void {
    this.mute()
    this.#socket.destroy()
  }

  /** Closes at once and calls the handler's `closed`. */
  fail(cause: Error): void {
    this.#lost(cause)
    this.destroy()
  }

  #read(chunk: Buffer): void {
    this.handler?.received?.()
    try {
      this.reader.push(chunk)
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #lost(cause: Error): void {
    const { handler } = this
    this.mute()
    handler?.closed(cause)
  }
}
