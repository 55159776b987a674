import type { TransportOptions } from '../../ports/transport.js'
import type { UwsConnection } from './connection.js'

/** Sweeps per interval, so that a ping is late by at most a quarter of it. */
const TICKS_PER_INTERVAL = 4
const MIN_TICK_MS = 5

/**
 * Pings silent connections and finds those that do not answer. uWebSockets.js has `idleTimeout` and
 * `sendPingsAutomatically`, but in steps of 4 s, without an own answer time, and without a close code.
 *
 * One timer sweeps all connections, which costs less than a timer update per frame. Complete messages, pings and pongs
 * count as activity; uWebSockets.js does not report fragments.
 */
export class UwsKeepalive {
  readonly #tickMs: number
  readonly #pingTicks: number
  readonly #timeoutTicks: number
  readonly #connections: ReadonlyMap<unknown, UwsConnection>
  readonly #onSilence: (connection: UwsConnection) => void
  #tick = 1
  #timer: NodeJS.Timeout | undefined

  /** @param onSilence The connection did not answer a ping in time: the caller closes it. */
  constructor(
    options: Pick<TransportOptions, 'pingIntervalMs' | 'pingTimeoutMs'>,
    connections: ReadonlyMap<unknown, UwsConnection>,
    onSilence: (connection: UwsConnection) => void,
  ) {
    const { pingIntervalMs, pingTimeoutMs } = options
    this.#tickMs = Math.max(MIN_TICK_MS, Math.min(pingIntervalMs, pingTimeoutMs) / TICKS_PER_INTERVAL)
    this.#pingTicks = Math.ceil(pingIntervalMs / this.#tickMs)
    this.#timeoutTicks = Math.ceil(pingTimeoutMs / this.#tickMs)
    this.#connections = connections
    this.#onSilence = onSilence
  }

  start(): void {
    if (this.#pingTicks > 0) this.#timer = setInterval(() => this.#sweep(), this.#tickMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Records activity of the connection. */
  alive(connection: UwsConnection): void {
    connection.heardTick = this.#tick
    connection.pingTick = 0
  }

  #sweep(): void {
    this.#tick++
    for (const connection of this.#connections.values()) {
      if (connection.pingTick > 0) {
        // One extra tick, because the ping was sent somewhere within its tick.
        if (this.#tick - connection.pingTick > this.#timeoutTicks) this.#onSilence(connection)
      } else if (this.#tick - connection.heardTick > this.#pingTicks) {
        connection.pingTick = this.#tick
        connection.socket?.ping()
      }
    }
  }
}
