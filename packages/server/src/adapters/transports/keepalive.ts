import type { TransportOptions } from '../../kernel/ports/transport-options.js'

/** Sweeps per interval, so that a ping is late by at most a quarter of it. */
const TICKS_PER_INTERVAL = 4
const MIN_TICK_MS = 5

/** The part of a connection that {@link Keepalive} reads and writes. */
export interface Watched {
  /** Tick of the last received data. */
  heardTick: number
  /** Tick of the unanswered ping; 0: none. */
  pingTick: number
  /** Not read, so its pong may wait in the socket. */
  readonly isPaused: boolean
}

export interface KeepaliveEvents<Connection> {
  /** The connection has been silent: send it a ping. */
  ping(connection: Connection): void
  /** The connection did not answer a ping in time: close it. */
  silent(connection: Connection): void
}

/**
 * Pings silent connections and finds those that do not answer. uWebSockets.js has `idleTimeout` and
 * `sendPingsAutomatically`, but in steps of 4 s, without an own answer time, and without a close code.
 *
 * One timer sweeps all connections, which costs less than a timer update per frame.
 */
export class Keepalive<Connection extends Watched> {
  readonly #tickMs: number
  readonly #pingTicks: number
  readonly #timeoutTicks: number
  readonly #connections: Iterable<Connection>
  readonly #events: KeepaliveEvents<Connection>
  #tick = 1
  #timer: NodeJS.Timeout | undefined

  constructor(
    options: Pick<TransportOptions, 'pingIntervalMs' | 'pingTimeoutMs'>,
    connections: Iterable<Connection>,
    events: KeepaliveEvents<Connection>,
  ) {
    const { pingIntervalMs, pingTimeoutMs } = options
    this.#tickMs = Math.max(MIN_TICK_MS, Math.min(pingIntervalMs, pingTimeoutMs) / TICKS_PER_INTERVAL)
    this.#pingTicks = Math.ceil(pingIntervalMs / this.#tickMs)
    this.#timeoutTicks = Math.ceil(pingTimeoutMs / this.#tickMs)
    this.#connections = connections
    this.#events = events
  }

  start(): void {
    if (this.#pingTicks > 0) this.#timer ??= setInterval(() => this.#sweep(), this.#tickMs)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  alive(connection: Connection): void {
    connection.heardTick = this.#tick
    connection.pingTick = 0
  }

  /**
   * The time for an answer starts now: the connection is read again, so it may wait in the socket; or its peer has taken output,
   * and the ping may stand behind more.
   */
  restart(connection: Connection): void {
    if (connection.pingTick > 0) connection.pingTick = this.#tick
  }

  #sweep(): void {
    this.#tick++
    for (const connection of this.#connections) {
      // A paused connection is pinged like a silent one that answers.
      if (connection.isPaused && this.#tick - connection.pingTick > this.#pingTicks) connection.pingTick = 0
      if (connection.pingTick > 0) {
        // One extra tick, because the ping was sent somewhere within its tick.
        if (!connection.isPaused && this.#tick - connection.pingTick > this.#timeoutTicks)
          this.#events.silent(connection)
      } else if (this.#tick - connection.heardTick > this.#pingTicks) {
        connection.pingTick = this.#tick
        this.#events.ping(connection)
      }
    }
  }
}
