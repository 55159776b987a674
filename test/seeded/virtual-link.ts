import type { LinkFault, Target } from '../../packages/check/src/playing/link.js'
import { Network, type VirtualSocket } from './network.js'

let portCount = 20_000

/** The part of the checker's link that the door of a client uses, on the network of this process. */
export class Link {
  readonly port = ++portCount
  readonly #network = Network.current
  readonly #sockets = new Set<VirtualSocket>()
  #isStalled = false

  private constructor(choose: () => Target) {
    this.#network.doors.set(this.port, (socket) => {
      const target = choose()
      const { port, ended } = typeof target === 'number' ? { port: target, ended: undefined } : target
      this.#sockets.add(socket)
      if (this.#isStalled) socket.pause()
      socket.once('close', () => {
        this.#sockets.delete(socket)
        ended?.()
      })
      return port
    })
  }

  static async start(target: Target | (() => Target)): Promise<Link> {
    return new Link(typeof target === 'function' ? target : () => target)
  }

  break(fault: LinkFault): void {
    if (fault.fault === 'cut') for (const socket of [...this.#sockets]) socket.fail()
    else if (fault.fault === 'stall') {
      this.#isStalled = true
      for (const socket of this.#sockets) socket.pause()
    } else throw new Error(`no door does ${fault.fault}`)
  }

  heal(): void {
    if (!this.#isStalled) return
    this.#isStalled = false
    for (const socket of this.#sockets) socket.resume()
  }

  stop(): void {
    for (const socket of [...this.#sockets]) socket.fail()
    this.#network.doors.delete(this.port)
  }
}
