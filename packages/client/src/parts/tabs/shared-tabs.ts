import { checks } from '../../core/checks.js'
import type { WebSocketConstructor, WebSocketLike } from '../../core/client-options.js'
import { invalid, MAX_TIMER_MS, socketClassOf } from '../../core/options.js'
import { randomName } from '../../core/publishing/random-name.js'
import { Election } from './election.js'
import { ABNORMAL, portOf } from './port.js'
import { TabSocket } from './tab-socket.js'

/** Options of {@link sharedTabs}. */
export interface SharedTabsOptions {
  /** Tabs of the origin with the same name share connections; default `webmq`. */
  readonly name?: string
  /**
   * Makes the worker that calls {@link serveTabs}. The connection then belongs to no tab. Without it, or where the browser
   * has no `SharedWorker`, one of the tabs holds the connection.
   */
  readonly worker?: () => SharedWorker
  /** Time in which the tab with the connection must answer; default 5,000. After that, another tab replaces it. */
  readonly silentAfterMs?: number
  /**
   * Bytes that may wait for a tab; default 8,388,608. A tab beyond it is disconnected (`E_SLOW_CONSUMER`), and resumes from
   * its positions.
   */
  readonly maxTabBytes?: number
  /** The class of the connections to the server; default: the browser's. */
  readonly WebSocket?: WebSocketConstructor
}

/** How a page is connected. */
export interface TabsStatus {
  /**
   * `worker`: by the shared worker. `leader`: this tab holds the connection. `follower`: another tab does. `alone`: the
   * page has a connection of its own. `idle`: no client has connected yet.
   */
  readonly mode: 'worker' | 'leader' | 'follower' | 'alone' | 'idle'
  /** Why tabs are not shared, or the worker is not used. */
  readonly reason?: string
}

/** The option `WebSocket` of a client whose connection all tabs share. */
export interface SharedTabs extends WebSocketConstructor {
  readonly status: TabsStatus
}

/** Default of `maxTabBytes`. */
export const MAX_TAB_BYTES = 8_388_608

/** Workers in a row that do not answer, after which tabs do without. */
const MAX_SILENT_WORKERS = 2

/**
 * Makes the option `WebSocket` for a client that shares its connection with the other tabs of the origin:
 * `setup({ url, WebSocket: sharedTabs() })`.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function sharedTabs(options: SharedTabsOptions = {}): SharedTabs {
  checks.part?.('sharedTabs', options)
  const tabs = new Tabs(options)
  // A class whose objects are of another one: it depends on the browser.
  const construct = function construct(url: string, protocols: string[]): WebSocketLike {
    return tabs.open(url, protocols)
  } as unknown as SharedTabs
  return Object.defineProperty(construct, 'status', { get: () => tabs.status })
}

/** The shared connections of one page. */
class Tabs {
  readonly #options: SharedTabsOptions
  readonly #name: string
  readonly #pingMs: number
  #election: Election | undefined
  #worker: SharedTabsOptions['worker']
  #silentWorkers = 0
  /** The lock that tells others that this page lives. */
  #life: { readonly name: string; readonly held: Promise<void>; end(): void } | undefined
  readonly #sockets = new Set<TabSocket>()
  /** A sandboxed frame, or a page that may store nothing, has locks and may not use them. */
  #isDenied = false
  #mode: 'idle' | 'alone' | 'shared' = 'idle'
  #reason: string | undefined

  constructor(options: SharedTabsOptions) {
    const { name = 'webmq', silentAfterMs = 5_000, maxTabBytes = MAX_TAB_BYTES } = options
    if (!(silentAfterMs > 0 && silentAfterMs <= MAX_TIMER_MS)) throw invalid('silentAfterMs')
    if (!(maxTabBytes > 0)) throw invalid('maxTabBytes')
    this.#options = options
    this.#name = name
    this.#pingMs = silentAfterMs / 2
    this.#worker = options.worker
  }

  get status(): TabsStatus {
    const mode = this.#mode === 'shared' ? this.#sharedMode() : this.#mode
    return { mode, ...(this.#reason !== undefined && { reason: this.#reason }) }
  }

  open(url: string, protocols: string[]): WebSocketLike {
    const { locks } = globalThis.navigator ?? {}
    const missing =
      locks && !this.#isDenied ? typeof BroadcastChannel === 'undefined' && 'BroadcastChannel' : 'Web Locks'
    if (!locks || missing) {
      this.#mode = 'alone'
      this.#reason = `the page has no ${missing}${globalThis.isSecureContext === false ? ' without TLS' : ''}`
      return new (socketClassOf(this.#options))(url, protocols)
    }
    if (this.#worker && typeof SharedWorker === 'undefined') this.#withoutWorker('the browser has no SharedWorker')
    this.#mode = 'shared'
    const life = this.#live(locks)
    const socket: TabSocket = new TabSocket(url, {
      pingMs: this.#pingMs,
      lock: life.name,
      onEnd: (isSilent) => this.#ended(socket, isSilent),
    })
    this.#sockets.add(socket)
    // First the lock: a hub must not take this page for a dead one.
    life.held.then(
      () => socket.isEnded || this.#connect(socket, locks),
      () => {
        this.#isDenied = true
        socket.end(ABNORMAL, 'the page may not use Web Locks')
      },
    )
    return socket
  }

  #sharedMode(): 'worker' | 'leader' | 'follower' {
    if (this.#worker) return 'worker'
    return this.#election?.isLeader ? 'leader' : 'follower'
  }

  #connect(socket: TabSocket, locks: LockManager): void {
    if (this.#worker) {
      const worker = this.#worker()
      worker.onerror = () => {
        this.#withoutWorker('the worker could not be loaded')
        socket.end(ABNORMAL, 'the worker could not be loaded')
      }
      socket.attach(portOf(worker.port))
      return
    }
    this.#election ??= new Election({
      name: `webmq-tabs ${this.#name}`,
      locks,
      jitterMs: this.#pingMs,
      socketClass: socketClassOf(this.#options),
      maxTabBytes: this.#options.maxTabBytes ?? MAX_TAB_BYTES,
    })
    this.#election.connect(socket)
  }

  #ended(socket: TabSocket, isSilent: boolean): void {
    this.#sockets.delete(socket)
    if (!this.#worker) this.#election?.ended(socket, isSilent)
    else if (!isSilent) this.#silentWorkers = 0
    else if (++this.#silentWorkers >= MAX_SILENT_WORKERS) this.#withoutWorker('the worker does not answer')
  }

  #withoutWorker(reason: string): void {
    this.#worker = undefined
    this.#reason = reason
  }

  /** Takes a lock for as long as the page lives and is awake. */
  #live(locks: LockManager) {
    if (this.#life) return this.#life
    const name = `webmq-tab ${randomName()}`
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const held = new Promise<void>((resolve, reject) => {
      const use = () => {
        resolve()
        return ended
      }
      locks.request(name, use).catch(reject)
    })
    this.#life = { name, held, end }
    const page = new AbortController()
    const leave = () => {
      page.abort()
      this.#leave()
    }
    // A page in the back/forward cache, or frozen, must hold nothing. The client reconnects when it is back.
    globalThis.addEventListener?.('pagehide', leave, { signal: page.signal })
    globalThis.document?.addEventListener('freeze', leave, { signal: page.signal })
    return this.#life
  }

  #leave(): void {
    for (const socket of [...this.#sockets]) socket.leave('the page is hidden')
    this.#election?.leave()
    this.#life?.end()
    this.#life = undefined
  }
}
