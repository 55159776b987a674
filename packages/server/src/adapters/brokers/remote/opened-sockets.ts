import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

const CHANNEL = 'net.client.socket'
/** A library that defers its writes to an immediate writes one turn later. */
const MAX_IDLE_TURNS = 2

/**
 * The sockets that a library opens during one call, so that they can be destroyed or batched, then or later.
 *
 * Node tells of every new client socket on a diagnostics channel, but of none that `tls.connect` opens. The async context tells which of them belong to the call.
 * Call {@link end} when the call has settled: while any async context is kept, a promise costs Node 20 three times as much.
 */
export class OpenedSockets {
  readonly #context = new AsyncLocalStorage<true>()
  readonly #sockets = new Set<Socket>()
  readonly #note: (message: unknown) => void
  #isDestroyed = false
  #isBatching = false
  /** Bytes that the sockets had been given at the last look. */
  #byteCount = 0
  #idleTurns = 0

  constructor() {
    this.#note = (message) => {
      if (this.#context.getStore() !== true) return
      const { socket } = message as { readonly socket: Socket }
      if (this.#isDestroyed) socket.destroy()
      else this.#sockets.add(socket)
    }
    subscribe(CHANNEL, this.#note)
  }

  run<Result>(call: () => Result): Result {
    return this.#context.run(true, call)
  }

  /**
   * Sends what the library writes in each turn of the event loop with one call of the system per socket, from now until it
   * writes nothing more.
   */
  batch(): void {
    this.#idleTurns = 0
    if (this.#isBatching || this.#sockets.size === 0) return
    this.#isBatching = true
    for (const socket of this.#sockets) socket.cork()
    setImmediate(this.#sendTurn)
  }

  readonly #sendTurn = (): void => {
    let byteCount = 0
    for (const socket of this.#sockets) {
      byteCount += socket.bytesWritten
      socket.uncork()
    }
    if (byteCount === this.#byteCount) this.#idleTurns++
    this.#byteCount = byteCount
    this.#isBatching = this.#idleTurns < MAX_IDLE_TURNS
    if (!this.#isBatching) return
    for (const socket of this.#sockets) socket.cork()
    setImmediate(this.#sendTurn)
  }

  /** Destroys the sockets of the call: those there are, and those it opens later. */
  destroy(): void {
    this.#isDestroyed = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Stops watching; the sockets live on until `destroy`. */
  end(): void {
    unsubscribe(CHANNEL, this.#note)
    this.#context.disable()
  }
}
