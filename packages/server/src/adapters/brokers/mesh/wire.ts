import type { Socket } from 'node:net'
import { FRAME_HEAD_BYTES } from './frames.js'

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

const LENGTH_BYTES = 4

/**
 * Receives one whole frame: its type, and where its body begins and ends.
 * @param bytes Valid until the call returns.
 */
export type OnFrame = (type: number, bytes: Buffer, start: number, end: number) => void

/**
 * Finds frames in the chunks of a socket. Frames are read in place; only a frame that spans several chunks is copied.
 */
export class FrameReader {
  /** Largest allowed frame, type included. Unauthenticated peers cannot make the node allocate more. */
  maxFrameBytes: number
  readonly #onFrame: OnFrame
  #isStopped = false
  /** Beginning of an incomplete frame, or of its length. */
  #partial: Buffer | undefined
  #filled = 0

  constructor(maxFrameBytes: number, onFrame: OnFrame) {
    this.maxFrameBytes = maxFrameBytes
    this.#onFrame = onFrame
  }

  /** Stops at once, even within the current chunk. */
  stop(): void {
    this.#isStopped = true
    this.#partial = undefined
  }

  /**
   * Hands on every complete frame.
   * @throws {RangeError} when a frame is empty, or larger than allowed.
   */
  push(chunk: Buffer): void {
    let at = this.#partial === undefined ? 0 : this.#complete(chunk)
    const { length } = chunk
    while (!this.#isStopped) {
      const bodyAt = at + FRAME_HEAD_BYTES
      if (bodyAt > length) break
      const end = at + LENGTH_BYTES + this.#lengthAt(chunk, at)
      if (end > length) break
      this.#onFrame(chunk[at + LENGTH_BYTES] as number, chunk, bodyAt, end)
      at = end
    }
    if (!this.#isStopped && at < length) this.#keep(chunk, at)
  }

  /** Completes the partial frame; returns where the next frame begins. */
  #complete(chunk: Buffer): number {
    let taken = 0
    while (this.#partial !== undefined && !this.#isStopped) {
      const count = Math.min(this.#partial.length - this.#filled, chunk.length - taken)
      chunk.copy(this.#partial, this.#filled, taken, taken + count)
      this.#filled += count
      taken += count
      if (this.#filled < this.#partial.length) return taken
      const frame = this.#partial
      if (frame.length === LENGTH_BYTES) {
        this.#partial = Buffer.allocUnsafeSlow(LENGTH_BYTES + this.#lengthAt(frame, 0))
        frame.copy(this.#partial)
        continue
      }
      this.#partial = undefined
      this.#onFrame(frame[LENGTH_BYTES] as number, frame, FRAME_HEAD_BYTES, frame.length)
    }
    return taken
  }

  /** Keeps the beginning of a frame until the rest arrives. */
  #keep(chunk: Buffer, at: number): void {
    const rest = chunk.length - at
    const size = rest < LENGTH_BYTES ? LENGTH_BYTES : LENGTH_BYTES + this.#lengthAt(chunk, at)
    this.#partial = Buffer.allocUnsafeSlow(size)
    this.#filled = chunk.copy(this.#partial, 0, at)
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length =
      (bytes[at] as number) +
      (bytes[at + 1] as number) * 0x100 +
      (bytes[at + 2] as number) * 0x1_0000 +
      (bytes[at + 3] as number) * 0x100_0000
    if (length === 0 || length > this.maxFrameBytes) {
      throw new RangeError(`a frame of ${length} bytes, at least 1 and at most ${this.maxFrameBytes} are allowed`)
    }
    return length
  }
}
