import type { WsConnection } from './connection.js'

const DEFAULT_MESSAGE_TIMEOUT_MS = 30_000
/** Sweeps per time limit, so that a connection is closed late by at most a quarter of it. */
const TICKS_PER_TIMEOUT = 4
const MIN_TICK_MS = 5

/**
 * Bytes of a connection that are handled before the others have their turn. Node reads up to 2 MiB of one socket in a row,
 * so a client that floods would delay all others.
 */
const MAX_TURN_BYTES = 128 * 1024

/** Limits what is read from each connection: bytes per turn of the event loop, and the time of a message. */
export class WsReading {
  readonly #tickMs: number
  readonly #timeoutTicks: number
  readonly #connections: Iterable<WsConnection>
  readonly #onLate: (connection: WsConnection) => void
  /** Connections that were read in this turn. */
  readonly #read: WsConnection[] = []
  #turnEnd: NodeJS.Immediate | undefined
  #tick = 1
  #timer: NodeJS.Timeout | undefined

  /** @param onLate A message has not ended in time: the caller closes the connection. */
  constructor(
    messageTimeoutMs: number = DEFAULT_MESSAGE_TIMEOUT_MS,
    connections: Iterable<WsConnection>,
    onLate: (connection: WsConnection) => void,
  ) {
    this.#tickMs = Math.max(MIN_TICK_MS, messageTimeoutMs / TICKS_PER_TIMEOUT)
    this.#timeoutTicks = Math.ceil(messageTimeoutMs / this.#tickMs)
    this.#connections = connections
    this.#onLate = onLate
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#sweep(), this.#tickMs)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  received(connection: WsConnection, chunk: Uint8Array): void {
    const hasEnded = connection.boundaries.read(chunk)
    if (connection.boundaries.partialBytes === 0) connection.messageTick = 0
    else if (hasEnded || connection.messageTick === 0) connection.messageTick = this.#tick
    if (connection.turnBytes === 0) {
      this.#read.push(connection)
      this.#turnEnd ??= setImmediate(() => this.#endTurn())
    }
    connection.turnBytes += chunk.length
    if (connection.turnBytes >= MAX_TURN_BYTES) connection.websocket.pause()
  }

  pause(connection: WsConnection): void {
    connection.isPaused = true
    connection.websocket.pause()
  }

  resume(connection: WsConnection): void {
    connection.isPaused = false
    connection.websocket.resume()
  }

  #endTurn(): void {
    this.#turnEnd = undefined
    for (const connection of this.#read) {
      const wasStopped = connection.turnBytes >= MAX_TURN_BYTES
      connection.turnBytes = 0
      if (wasStopped && !connection.isPaused) connection.websocket.resume()
    }
    this.#read.length = 0
  }

  #sweep(): void {
    this.#tick++
    for (const connection of this.#connections) {
      if (connection.messageTick === 0) continue
      if (connection.isPaused) connection.messageTick++
      // One extra tick, because the message began somewhere within its tick.
      else if (this.#tick - connection.messageTick > this.#timeoutTicks) this.#onLate(connection)
    }
  }
}
