import { WebMQError } from 'webmq-client/protocol'
import type { AcceptOptions, Rejection, UpgradeId, UpgradeRequest } from 'webmq-server/ports'
import type { UpgradeGate } from 'webmq-server/transports'
import {
  acceptedExtensions,
  checkHeaders,
  findHandshakeFault,
  isToken,
  type RequestHead,
  upgradeRequest,
  valuesOf,
} from 'webmq-server/transports'
import type { UwsResponse } from './module.js'
import { writeError, writeRejection } from './response.js'

/** A pending upgrade request. */
interface PendingUpgrade {
  readonly response: UwsResponse
  readonly context: object
  readonly key: string
  /** The value for uWebSockets.js, which writes the answer. */
  readonly extensions: string
  readonly timer: NodeJS.Timeout
}

/** Upgrade requests from their arrival to their decision. */
export class UwsUpgrades {
  readonly #gate: UpgradeGate
  readonly #pending = new Map<UpgradeId, PendingUpgrade>()
  #lastId = 0
  #refusedCount = 0

  constructor(gate: UpgradeGate) {
    this.#gate = gate
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  get refusedCount(): number {
    return this.#refusedCount
  }

  /** Registers an upgrade; `undefined` when it is refused at once. */
  receive(head: RequestHead, response: UwsResponse, context: object): UpgradeRequest | undefined {
    if (head.bytes > this.#gate.maxHeaderBytes) return this.#refuse(response, 'E_HEADERS_TOO_LARGE')
    const fault = findHandshakeFault(head)
    if (fault !== undefined) return this.#refuse(response, 'E_HANDSHAKE_INVALID', fault)
    if (this.#gate.isFull(this.pendingCount)) return this.#refuse(response, 'E_CONNECTION_LIMIT')
    const id = ++this.#lastId as UpgradeId
    const timer = setTimeout(() => {
      this.#pending.delete(id)
      this.#refuse(response, 'E_HANDSHAKE_TIMEOUT')
    }, this.#gate.handshakeTimeoutMs)
    const [key = ''] = valuesOf(head, 'sec-websocket-key')
    const extensions = this.#gate.hasCompression ? acceptedExtensions(head, { namesServerWindow: false }) : ''
    this.#pending.set(id, { response, context, key, extensions, timer })
    response.onAborted(() => this.#take(id))
    return upgradeRequest(id, head)
  }

  /**
   * Answers with 101. uWebSockets.js calls its `open` handler before this returns.
   * @returns Whether the upgrade was still pending.
   * @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending.
   */
  accept(id: UpgradeId, userData: object, { subprotocol = '', headers = {} }: AcceptOptions): boolean {
    checkHeaders(headers)
    if (subprotocol !== '' && !isToken(subprotocol)) {
      throw new WebMQError('E_OPTION_INVALID', { detail: `subprotocol ${JSON.stringify(subprotocol)} is not a token` })
    }
    const pending = this.#take(id)
    if (pending === undefined) return false
    const { response, key, extensions, context } = pending
    response.cork(() => {
      // The status must come first; otherwise the first header would make this a 200.
      response.writeStatus('101 Switching Protocols')
      for (const [name, value] of Object.entries(headers)) response.writeHeader(name, value)
      response.upgrade(userData, key, subprotocol, extensions, context)
    })
    return true
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the upgrade stays pending. */
  reject(id: UpgradeId, rejection: Rejection): void {
    const pending = this.#pending.get(id)
    if (pending === undefined) return
    writeRejection(pending.response, rejection)
    this.#take(id)
    this.#refusedCount++
  }

  /** Refuses all pending upgrades. */
  rejectAll(rejection: Rejection): void {
    for (const id of this.#pending.keys()) this.reject(id, rejection)
  }

  /** Removes an upgrade and its timer. */
  #take(id: UpgradeId): PendingUpgrade | undefined {
    const pending = this.#pending.get(id)
    clearTimeout(pending?.timer)
    this.#pending.delete(id)
    return pending
  }

  #refuse(...refusal: Parameters<typeof writeError>): undefined {
    writeError(...refusal)
    this.#refusedCount++
  }
}
