import { randomName } from '../../core/publishing/random-name.js'
import { Hub, type HubOptions } from './hub.js'
import { ABNORMAL, portOf, portPair } from './port.js'
import type { TabSocket } from './tab-socket.js'

/** What tabs tell each other before they have a channel of their own. */
type Call =
  /** A tab waits for a hub, on the channel of this name. */
  | readonly ['join', channel: string]
  /** The sender has the hub now. */
  | readonly ['lead']

export interface ElectionOptions extends HubOptions {
  /** Tabs with the same name share a hub. */
  readonly name: string
  /** Upper limit of the random time before a silent leader is replaced. */
  readonly jitterMs: number
}

/**
 * Chooses the tab that holds the connection: the one with a Web Lock, which the browser passes on when that tab ends. A
 * leader that is there but does not answer loses the lock to a tab that has noticed.
 */
export class Election {
  readonly #options: ElectionOptions
  readonly #sockets = new Set<TabSocket>()
  #calls: BroadcastChannel | undefined
  #hub: Hub | undefined
  /** Ends the wait for the lock. */
  #wait: AbortController | undefined
  #release: (() => void) | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: ElectionOptions) {
    this.#options = options
  }

  get isLeader(): boolean {
    return this.#hub !== undefined
  }

  /** Connects a socket to the hub, in this tab or another. */
  connect(socket: TabSocket): void {
    this.#sockets.add(socket)
    if (!this.#calls) {
      this.#calls = new BroadcastChannel(this.#options.name)
      this.#calls.onmessage = ({ data }: MessageEvent<Call>) => this.#hear(data)
      this.#campaign(false)
    }
    this.#attach(socket)
  }

  /** A socket has ended. @param isSilent Whether the leader does not answer it. */
  ended(socket: TabSocket, isSilent: boolean): void {
    this.#sockets.delete(socket)
    if (!isSilent || this.#hub || this.#timer !== undefined) return
    // At random, so that not all tabs replace the leader at once.
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#campaign(true)
    }, Math.random() * this.#options.jitterMs)
  }

  /** The page goes away, or sleeps: another tab takes over. */
  leave(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#wait?.abort()
    this.#depose()
    this.#calls?.close()
    this.#calls = undefined
    this.#endSockets()
  }

  #attach(socket: TabSocket): void {
    if (this.#hub) {
      const [mine, its] = portPair()
      socket.attach(mine)
      this.#hub.accept(its)
      return
    }
    const channel = `${this.#options.name} ${randomName()}`
    socket.attach(portOf(new BroadcastChannel(channel)))
    this.#call(['join', channel])
  }

  #call(call: Call): void {
    this.#calls?.postMessage(call)
  }

  #hear(call: Call): void {
    if (call[0] === 'join') {
      this.#hub?.accept(portOf(new BroadcastChannel(call[1])))
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#endSockets()
  }

  /** Waits for the lock or, with `steal`, takes it from a leader that does not answer. */
  #campaign(steal: boolean): void {
    this.#wait?.abort()
    const wait = new AbortController()
    this.#wait = wait
    const { name, locks } = this.#options
    locks
      .request(name, steal ? { steal } : { signal: wait.signal }, () => {
        if (wait.signal.aborted) return undefined
        const held = new Promise<void>((resolve) => {
          this.#release = resolve
        })
        this.#lead()
        return held
      })
      .catch(() => {
        // Stolen, because this tab did not answer; otherwise this tab itself has left.
        if (wait.signal.aborted) return
        this.#depose()
        this.#campaign(false)
      })
  }

  #lead(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#hub = new Hub(this.#options)
    this.#call(['lead'])
    this.#endSockets()
  }

  #depose(): void {
    this.#release?.()
    this.#release = undefined
    const hub = this.#hub
    this.#hub = undefined
    hub?.close()
  }

  /** Moves every socket to the present hub: those that have none yet at once, the others by reconnecting. */
  #endSockets(): void {
    for (const socket of [...this.#sockets]) {
      if (socket.isGreeted || !this.#calls) socket.end(ABNORMAL, 'another tab holds the connection now')
      else this.#attach(socket)
    }
  }
}
