import type { WebSocketConstructor } from '../../core/client-options.js'
import { shownOf } from './head.js'
import { type Frame, type SocketWatcher, WatchedSocket } from './watched-socket.js'

/** Troubles that can be rehearsed. */
export const TROUBLES = ['drop', 'silence', 'expire', 'reject', 'offline'] as const
export type TroubleName = (typeof TROUBLES)[number]

/** Collaborators of {@link Trouble}. */
export interface TroubleContext {
  sent(frame: Frame): void
  received(frame: Frame): void
  down(): void
  /** Opens the client again if the trouble has closed it. */
  reopen(): void
}

/** Longer than a heartbeat and its timeout usually are. */
const SILENCE_MS = 60_000
const OFFLINE_MS = 10_000
/** A trouble of the next connection is off after this time, even if there was none. */
const ARMED_MS = 60_000
/** A client that a refused token has closed is opened after this time. */
const REOPEN_MS = 5_000
/** Of the protocol, like the lines below. */
const TOKEN_INVALID = 4501
const REJECTION = [
  'error - E_TOKEN_INVALID\n{"message":"token is not valid (rehearsed by devtools)","retryable":false}',
  `bye ${TOKEN_INVALID}`,
]

/**
 * Breaks the connection of a client the way networks and servers do: sockets that end, frames that are lost, a log that
 * no longer has what was missed. The client sees nothing but its socket, so it takes the same paths as in earnest. Every
 * trouble ends by itself.
 */
export class Trouble implements SocketWatcher {
  readonly #context: TroubleContext
  readonly #sockets = new Set<WatchedSocket>()
  readonly #timers = new Map<TroubleName, ReturnType<typeof setTimeout>>()
  /** Listens whose replay is withheld, by the id of their request. */
  readonly #expired = new Set<string>()

  constructor(context: TroubleContext) {
    this.#context = context
  }

  /** Whether a trouble is going on, or waits for the next connection. */
  isOn(name: TroubleName): boolean {
    return this.#timers.has(name)
  }

  get isOffline(): boolean {
    return this.isOn('offline')
  }

  /** Returns a class of sockets that it can break. */
  watch(base: () => WebSocketConstructor): WebSocketConstructor {
    const watcher = this
    return class extends WatchedSocket {
      constructor(url: string, protocols: string[]) {
        super(watcher, base(), url, protocols)
      }
    }
  }

  start(name: TroubleName): void {
    switch (name) {
      case 'drop':
        this.#cut()
        return
      case 'silence':
        // This connection has lost frames for good. The next one resumes.
        this.#during(name, SILENCE_MS, () => this.#cut())
        return
      case 'offline':
        this.#during(name, OFFLINE_MS)
        this.#cut()
        return
      case 'reject':
      case 'expire':
        this.#during(name, ARMED_MS)
        this.#cut()
    }
  }

  /** Ends all troubles. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }

  opened(socket: WatchedSocket): void {
    this.#sockets.add(socket)
  }

  sending(_: WatchedSocket, frame: Frame): Frame | undefined {
    if (this.isOn('silence')) return undefined
    const sent = this.isOn('expire') ? this.#withoutReplay(frame) : frame
    this.#context.sent(sent)
    return sent
  }

  receiving(socket: WatchedSocket, frame: Frame): Frame | undefined {
    if (this.isOn('silence')) return undefined
    if (this.isOn('reject')) {
      this.#reject(socket)
      return undefined
    }
    const received = this.#withGap(frame)
    this.#context.received(received)
    return received
  }

  closed(socket: WatchedSocket): void {
    this.#sockets.delete(socket)
    this.#expired.clear()
    // The client has found out.
    this.#over('silence')
    this.#context.down()
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.end()
  }

  #during(name: TroubleName, forMs: number, atEnd?: () => void): void {
    this.#over(name)
    const timer = setTimeout(() => {
      this.#timers.delete(name)
      atEnd?.()
    }, forMs)
    this.#timers.set(name, timer)
  }

  #over(name: TroubleName): void {
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
  }

  /** Refuses the connection as the server does when the token of the upgrade request fails [P-5.4]. */
  #reject(socket: WatchedSocket): void {
    this.#over('reject')
    for (const line of REJECTION) {
      this.#context.received(line)
      socket.deliver(line)
    }
    socket.end(TOKEN_INVALID)
    setTimeout(() => this.#context.reopen(), REOPEN_MS)
  }

  /** A listen that resumes asks for nothing, so it does miss what was published meanwhile. */
  #withoutReplay(frame: Frame): Frame {
    const [verb, id = ''] = shownOf(frame).head.split(' ')
    if (verb !== 'listen' || typeof frame !== 'string' || !/ since=\S+/.test(frame)) return frame
    this.#expired.add(id)
    return frame.replace(/ since=\S+/, '')
  }

  /** The answer to such a listen gets the gap of an expired log [P-8.3]. */
  #withGap(frame: Frame): Frame {
    const [verb, id = ''] = shownOf(frame).head.split(' ')
    if (verb !== 'ok' || typeof frame !== 'string' || !this.#expired.delete(id)) return frame
    // One reconnect is enough.
    if (this.#expired.size === 0) this.#over('expire')
    return frame.replace(/^ok \S+/, '$& gap=history-expired')
  }
}
