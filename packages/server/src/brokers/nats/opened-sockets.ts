import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

const CHANNEL = 'net.client.socket'

/**
 * The sockets that a library opens during one call, so that they can be destroyed, then or later.
 *
 * Node tells of every new client socket on a diagnostics channel. The async context tells which of them belong to the call.
 * Call {@link end} when the call has settled: while any async context is kept, a promise costs Node 20 three times as much.
 */
export class OpenedSockets {
  readonly #context = new AsyncLocalStorage<true>()
  readonly #sockets = new Set<Socket>()
  readonly #note: (message: unknown) => void
  #isDestroyed = false

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
