import type { WebSocketConstructor } from '../../core/client-options.js'
import { bodyOf, fieldsOf } from './frame.js'
import { identityOf } from './identity.js'
import { Link } from './link.js'
import { ABNORMAL, type Port } from './port.js'
import { Session } from './session.js'

export interface HubOptions {
  /** The class of the connections to the server. */
  readonly socketClass: WebSocketConstructor
  /** Tells when a tab has died: its lock is free. */
  readonly locks: Pick<LockManager, 'request'>
  readonly maxTabBytes: number
}

/** A tab that has not said hello by then has turned to another hub, or is gone. */
const HELLO_MS = 10_000

/**
 * Serves the tabs of an origin over one connection per URL and identity.
 *
 * It keeps no messages and no positions: each tab has its own, and after a failure resumes as it would without a hub.
 */
export class Hub {
  readonly #options: HubOptions
  readonly #links = new Map<string, Link>()
  #isClosed = false

  constructor(options: HubOptions) {
    this.#options = options
  }

  /** Serves a tab. */
  accept(port: Port): void {
    const timer = setTimeout(() => port.close(), HELLO_MS)
    port.onmessage = (message) => {
      if (message[0] !== 'hello') return
      clearTimeout(timer)
      this.#begin(port, message[1], message[2], message[3])
    }
    port.post(['open'])
  }

  /** Ends all connections. The tabs get another hub. */
  close(): void {
    this.#isClosed = true
    for (const link of [...this.#links.values()]) link.end(ABNORMAL, 'the tab that held the connection has gone')
  }

  #begin(port: Port, url: string, auth: string | undefined, lock: string): void {
    if (this.#isClosed) {
      port.post(['close', ABNORMAL, 'the tab that held the connection has gone'])
      port.close()
      return
    }
    const token = auth === undefined ? undefined : bodyOf(auth)
    try {
      this.#admit(port, url, token, auth, lock)
    } catch (error) {
      // The socket's constructor refuses the URL.
      port.post(['close', ABNORMAL, `${error}`])
      port.close()
    }
  }

  #admit(port: Port, url: string, token: string | undefined, auth: string | undefined, lock: string): void {
    const name = `${url} ${identityOf(token)}`
    const watch = new AbortController()
    const session = new Session(port, {
      maxTabBytes: this.#options.maxTabBytes,
      isFull: () => link.isFull,
      onFrame: (from, frame) => link.receive(from, frame),
      onClosed: (gone, code) => {
        watch.abort()
        link.remove(gone, code)
      },
    })
    if (auth !== undefined) session.authId = fieldsOf(auth)[1]
    const link = this.#links.get(name) ?? this.#link(name, url, token)
    session.begin()
    link.add(session)
    this.#options.locks
      .request(lock, { signal: watch.signal }, () => session.close(ABNORMAL, 'the tab has gone'))
      // The only rejection is that of the signal: the session has ended.
      .catch(() => undefined)
  }

  #link(name: string, url: string, token: string | undefined): Link {
    const link: Link = new Link({
      url,
      token,
      socketClass: this.#options.socketClass,
      onEnd: () => {
        if (this.#links.get(name) === link) this.#links.delete(name)
      },
    })
    this.#links.set(name, link)
    return link
  }
}
