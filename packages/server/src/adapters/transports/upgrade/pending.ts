import { WebMQError } from 'webmq-client/protocol'
import type {
  AcceptOptions,
  Rejection,
  TransportStats,
  UpgradeId,
  UpgradeKind,
} from '../../../kernel/ports/transport.js'
import type { TransportOptions } from '../../../kernel/ports/transport-options.js'
import type { SinkCalls } from '../sink-calls.js'
import { findHandshakeFault, type HandshakeFault, isToken, type RequestHead } from './handshake.js'
import { checkHeaders, checkRejection, rejectionOf } from './rejection.js'
import { TextUpgradeRequest } from './text-request.js'

/** What a transport says of its upgrades. `Held` is what it answers them with. */
export interface UpgradeHandling<Held> {
  readonly calls: () => SinkCalls | undefined
  /** Whether another connection exceeds the limit, including pending ones. */
  isFull(pendingCount: number): boolean
  /** Answers with a rejection that was checked, and ends the connection. */
  answer(held: Held, rejection: Required<Rejection>): void
  /** The upgrade waits for its decision from now on: `gone` takes it back when the client has left. */
  waits?(held: Held, gone: () => void): void
  /** Default: requests for WebSockets, numbered from 1. */
  readonly requests?: {
    readonly kind: UpgradeKind
    readonly firstId: number
    findFault(head: RequestHead): HandshakeFault | undefined
  }
}

type UpgradeLimits = Pick<TransportOptions, 'handshakeTimeoutMs' | 'maxHeaderBytes'>

const WEBSOCKETS = { kind: 'websocket', firstId: 1, findFault: findHandshakeFault } as const

export type RefusedCounts = Pick<TransportStats, 'refusedCount' | 'fullCount'>

export function sumOfRefused(one: RefusedCounts, other: RefusedCounts): RefusedCounts {
  return { refusedCount: one.refusedCount + other.refusedCount, fullCount: one.fullCount + other.fullCount }
}

interface Waiting<Held> {
  readonly held: Held
  readonly timer: NodeJS.Timeout
}

/** Upgrade requests of a transport on the event loop, from their arrival to their decision. */
export class PendingUpgrades<Held> {
  readonly #limits: UpgradeLimits
  readonly #handling: UpgradeHandling<Held>
  readonly #requests: NonNullable<UpgradeHandling<Held>['requests']>
  readonly #waiting = new Map<UpgradeId, Waiting<Held>>()
  #nextId: number
  readonly refused = { refusedCount: 0, fullCount: 0 }

  constructor(limits: UpgradeLimits, handling: UpgradeHandling<Held>) {
    this.#limits = limits
    this.#handling = handling
    this.#requests = handling.requests ?? WEBSOCKETS
    this.#nextId = this.#requests.firstId
  }

  /** Tells the sink of an upgrade, unless it is refused at once. */
  receive(head: RequestHead, held: Held): void {
    const refusal = this.#refusalOf(head)
    if (refusal !== undefined) {
      this.#answer(held, refusal)
      return
    }
    const id = this.#nextId++ as UpgradeId
    const timer = setTimeout(() => {
      this.#take(id)
      this.#answer(held, rejectionOf('E_HANDSHAKE_TIMEOUT'))
    }, this.#limits.handshakeTimeoutMs)
    this.#waiting.set(id, { held, timer })
    this.#handling.waits?.(held, () => this.#take(id))
    const isTold = this.#handling.calls()?.upgrade(requestOf(id, this.#requests.kind, head)) === true
    if (!isTold) this.reject(id, rejectionOf('E_INTERNAL', { status: 500 }))
  }

  /**
   * Takes an upgrade to accept it; `undefined` if it does not wait any more.
   * @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending.
   */
  accept(id: UpgradeId, { headers, subprotocol }: AcceptOptions): Held | undefined {
    checkHeaders(headers)
    if (subprotocol !== undefined && !isToken(subprotocol)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `subprotocol ${JSON.stringify(subprotocol)} is not a token` })
    }
    return this.#take(id)
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending. */
  reject(id: UpgradeId, rejection: Rejection): void {
    const checked = checkRejection(rejection)
    const held = this.#take(id)
    if (held !== undefined) this.#answer(held, checked)
  }

  rejectAll(rejection: Rejection): void {
    for (const id of this.#waiting.keys()) this.reject(id, rejection)
  }

  /** Counts a request that is refused elsewhere. */
  countRefusal(): void {
    this.refused.refusedCount++
  }

  #refusalOf(head: RequestHead): Required<Rejection> | undefined {
    if (head.bytes > this.#limits.maxHeaderBytes) return rejectionOf('E_HEADERS_TOO_LARGE')
    const fault = this.#requests.findFault(head)
    if (fault !== undefined) return rejectionOf('E_HANDSHAKE_INVALID', fault)
    if (!this.#handling.isFull(this.#waiting.size)) return undefined
    this.refused.fullCount++
    return rejectionOf('E_CONNECTION_LIMIT')
  }

  #answer(held: Held, rejection: Required<Rejection>): void {
    this.refused.refusedCount++
    this.#handling.answer(held, rejection)
  }

  #take(id: UpgradeId): Held | undefined {
    const waiting = this.#waiting.get(id)
    clearTimeout(waiting?.timer)
    this.#waiting.delete(id)
    return waiting?.held
  }
}

function requestOf(id: UpgradeId, kind: UpgradeKind, { remoteAddress, remotePort, path, query, headers }: RequestHead) {
  const lines = headers.map(([name, value]) => `${name}:${value}\n`)
  return new TextUpgradeRequest(id, kind, remotePort, `${remoteAddress}\n${path}\n${query}\n${lines.join('')}`)
}
