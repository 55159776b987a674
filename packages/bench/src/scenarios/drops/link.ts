import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'

/** What a client notices of a drop: the end of its connection at once, or nothing until the network is there again. */
export const DROP_KINDS = ['noticed', 'silent'] as const
export type DropKind = (typeof DROP_KINDS)[number]

/** Nobody listens here. */
const REFUSED = { host: '127.0.0.1', port: 1 }

/** The network of one client, which can be dropped. */
export class Link extends Agent {
  readonly #lost: () => void
  #socket: Socket | undefined
  #isDown = false

  /** @param lost Called when the present connection has ended. */
  constructor(lost: () => void) {
    super()
    this.#lost = lost
  }

  override createConnection({ host, port }: { host?: string | null; port?: number | string | null }): Socket {
    if (this.#isDown) return connect(REFUSED)
    const socket = connect({ host: host ?? REFUSED.host, port: Number(port), noDelay: true })
    this.#socket = socket
    socket.once('close', () => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      this.#lost()
    })
    return socket
  }

  /** No connection is made, and no byte arrives in either direction, until {@link mend}. */
  drop(kind: DropKind): void {
    this.#isDown = true
    if (kind === 'noticed') this.#socket?.resetAndDestroy()
    else if (this.#socket !== undefined) deafen(this.#socket)
  }

  /** The network is there again. A connection from before does not survive: its peer has sent what never came. */
  mend(): void {
    this.#isDown = false
    this.#socket?.resetAndDestroy()
  }
}

/** Throws away what comes and what is written. */
function deafen(socket: Socket): void {
  socket.removeAllListeners('data')
  socket.resume()
  socket.write = (_: unknown, encoding?: unknown, written?: unknown): boolean => {
    const done = [encoding, written].find((each) => typeof each === 'function')
    if (done !== undefined) process.nextTick(done as () => void)
    return true
  }
}
