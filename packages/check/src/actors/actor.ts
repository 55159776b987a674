import type { NodeAddress, RunRecord } from '../judging/record.js'
import { Connection, type ConnectionHandlers } from './connection.js'

/** What every actor is given. */
export interface ActorOptions {
  /** Unique in the run. */
  readonly name: string
  readonly record: RunRecord
  /**
   * Says where to connect next.
   * @param previous Name of the node that was tried last: an actor that moves wants another one.
   * @returns `undefined` if there is none now; the actor asks again soon.
   */
  readonly chooseNode: (previous: string | undefined) => NodeAddress | undefined
  /** Milliseconds since the run began. */
  readonly nowMs: () => number
  /** In [0, 1); from the seed of the run. */
  readonly random: () => number
}

/** When an actor gives a connection up. Clients of users wait longer; a run has less time. */
export interface Patience {
  readonly pingIntervalMs: number
  readonly pongTimeoutMs: number
  readonly answerTimeoutMs: number
}

/** Full jitter over a bound that doubles [P-10.1], within the time of a run. */
const BASE_DELAY_MS = 40
const MAX_DELAY_MS = 640

/** Keeps one connection: opens another when it has ended, until it is stopped. */
export class Reconnecting {
  readonly #options: ActorOptions
  readonly #patience: Patience
  readonly #handlers: Omit<ConnectionHandlers, 'ended'> & { readonly ended: () => void }
  #connection: Connection | undefined
  #timer: NodeJS.Timeout | undefined
  #stallTimer: NodeJS.Timeout | undefined
  #previous: string | undefined
  #number = -1
  #failedCount = 0
  #isStopped = false

  constructor(
    options: ActorOptions,
    patience: Patience,
    handlers: Omit<ConnectionHandlers, 'ended'> & { readonly ended: () => void },
  ) {
    this.#options = options
    this.#patience = patience
    this.#handlers = handlers
  }

  /** The connection, if requests may be sent on it. */
  get open(): Connection | undefined {
    return this.#connection?.isOpen ? this.#connection : undefined
  }

  /** {@link ConnectionRecord.number} of the last connection. */
  get number(): number {
    return this.#number
  }

  start(): void {
    if (this.#isStopped) return
    const node = this.#options.chooseNode(this.#previous)
    if (node === undefined) this.#retry(0)
    else this.#connect(node)
  }

  #connect(node: NodeAddress): void {
    this.#previous = node.name
    const { name, record, nowMs } = this.#options
    const { opened, ended } = this.#handlers
    this.#number = record.connections.length
    this.#connection = new Connection({
      ...this.#patience,
      owner: name,
      node,
      record,
      nowMs,
      handlers: {
        ...this.#handlers,
        opened: (welcome) => {
          this.#failedCount = 0
          opened(welcome)
        },
        ended: (retryAfterMs) => {
          this.#connection = undefined
          ended()
          this.#retry(retryAfterMs)
        },
      },
    })
  }

  cut(reason = 'cut'): void {
    this.#connection?.cut(reason)
  }

  move(): void {
    this.#connection?.close('move')
  }

  /** Ends it as a browser does that leaves the page. */
  leave(): void {
    this.#connection?.close('reload', 1_001)
  }

  stall(forMs: number): void {
    const connection = this.#connection
    connection?.pause()
    clearTimeout(this.#stallTimer)
    this.#stallTimer = setTimeout(() => connection?.resume(), forMs)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#stallTimer)
    this.#connection?.close('stop')
  }

  #retry(retryAfterMs: number): void {
    if (this.#isStopped) return
    const bound = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** this.#failedCount++)
    this.#timer = setTimeout(() => this.start(), retryAfterMs + this.#options.random() * bound)
  }
}
