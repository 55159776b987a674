import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from 'webmq-client/protocol'
import type { Rejection, UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import { acceptedExtensions } from '../upgrade/extensions.js'
import type { UpgradeGate } from '../upgrade/gate.js'
import { findHandshakeFault } from '../upgrade/handshake.js'
import { checkRejection, type RejectionDetails, rejectionOf } from '../upgrade/rejection.js'
import { headOf, upgradeRequest } from '../upgrade/request-head.js'
import { refuse } from './refuse.js'

/** An upgrade request that waits for its decision. */
export interface PendingUpgrade {
  readonly request: IncomingMessage
  readonly socket: Socket
  /** Bytes after the head. */
  readonly rest: Buffer
}

interface Waiting extends PendingUpgrade {
  readonly timer: NodeJS.Timeout
}

/** Upgrade requests from their arrival to their decision. */
export class WsUpgrades {
  readonly #gate: UpgradeGate
  readonly #waiting = new Map<UpgradeId, Waiting>()
  #lastId = 0
  #refusedCount = 0

  constructor(gate: UpgradeGate) {
    this.#gate = gate
  }

  get refusedCount(): number {
    return this.#refusedCount
  }

  /** Registers an upgrade; `undefined` when it is refused at once. */
  receive(request: IncomingMessage, socket: Duplex, rest: Buffer): UpgradeRequest | undefined {
    const head = headOf(request)
    if (head.bytes > this.#gate.maxHeaderBytes) return this.#refuse(socket, 'E_HEADERS_TOO_LARGE')
    const fault = findHandshakeFault(head)
    if (fault !== undefined) return this.#refuse(socket, 'E_HANDSHAKE_INVALID', fault)
    if (this.#gate.isFull(this.#waiting.size)) return this.#refuse(socket, 'E_CONNECTION_LIMIT')
    // `ws` reads the offers from here.
    const extensions = this.#gate.hasCompression ? acceptedExtensions(head, { namesServerWindow: true }) : ''
    request.headers['sec-websocket-extensions'] = extensions === '' ? undefined : extensions
    const id = ++this.#lastId as UpgradeId
    const timer = setTimeout(() => {
      this.#waiting.delete(id)
      this.#refuse(socket, 'E_HANDSHAKE_TIMEOUT')
    }, this.#gate.handshakeTimeoutMs)
    this.#waiting.set(id, { request, socket: socket as Socket, rest, timer })
    // A reset of a connection that nobody reads.
    socket.on('error', destroy)
    return upgradeRequest(id, head)
  }

  /** Removes an upgrade, to accept it; `undefined` if it does not wait any more. */
  take(id: UpgradeId): PendingUpgrade | undefined {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return undefined
    clearTimeout(waiting.timer)
    this.#waiting.delete(id)
    waiting.socket.off('error', destroy)
    return waiting
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending. */
  reject(id: UpgradeId, rejection: Rejection): void {
    const checked = checkRejection(rejection)
    const waiting = this.take(id)
    if (waiting === undefined) return
    refuse(waiting.socket, checked)
    this.#refusedCount++
  }

  /** Refuses all pending upgrades. */
  rejectAll(rejection: Rejection): void {
    for (const id of this.#waiting.keys()) this.reject(id, rejection)
  }

  /** Counts a request that is refused elsewhere. */
  countRefusal(): void {
    this.#refusedCount++
  }

  #refuse(socket: Duplex, code: ErrorCode, details?: RejectionDetails): undefined {
    refuse(socket, rejectionOf(code, details))
    this.#refusedCount++
  }
}

function destroy(this: Duplex): void {
  this.destroy()
}
