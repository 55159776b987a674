import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import type { AcceptOptions, Rejection, UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import type { UpgradeGate } from '../upgrade/gate.js'
import { checkHeaders, checkRejection, type RejectionDetails, rejectionOf } from '../upgrade/rejection.js'
import { headOf, type RequestHead, upgradeRequest, valuesOf } from '../upgrade/request-head.js'

/** Far beyond the ids of a transport's WebSockets, so that an id says which kind it is of. */
const FIRST_ID = 2 ** 52
const OWN_HEADERS: ReadonlySet<string> = new Set(['content-type', 'cache-control', 'x-accel-buffering'])

/** Whether this id is of an event stream, or of a request for one. */
export function isStreamId(id: number): boolean {
  return id >= FIRST_ID
}

interface Waiting {
  readonly response: ServerResponse
  readonly timer: NodeJS.Timeout
}

/** Requests for event streams from their arrival to their decision. */
export class StreamRequests {
  readonly #gate: Omit<UpgradeGate, 'hasCompression'>
  readonly #waiting = new Map<UpgradeId, Waiting>()
  #lastId = FIRST_ID
  #refusedCount = 0

  constructor(gate: Omit<UpgradeGate, 'hasCompression'>) {
    this.#gate = gate
  }

  get pendingCount(): number {
    return this.#waiting.size
  }

  get refusedCount(): number {
    return this.#refusedCount
  }

  /** Registers a `GET` of the path; `undefined` when it is refused at once. */
  receive(request: IncomingMessage, response: ServerResponse): UpgradeRequest | undefined {
    const head = headOf(request)
    if (head.bytes > this.#gate.maxHeaderBytes) return this.#refuse(response, 'E_HEADERS_TOO_LARGE')
    const detail = faultOf(head)
    if (detail !== undefined) return this.#refuse(response, 'E_HANDSHAKE_INVALID', { detail, status: 400 })
    if (this.#gate.isFull(this.pendingCount)) return this.#refuse(response, 'E_CONNECTION_LIMIT')
    const id = this.#lastId++ as UpgradeId
    const timer = setTimeout(() => {
      this.#waiting.delete(id)
      this.#refuse(response, 'E_HANDSHAKE_TIMEOUT')
    }, this.#gate.handshakeTimeoutMs)
    this.#waiting.set(id, { response, timer })
    response.once('close', () => this.#take(id))
    return upgradeRequest(id, head, 'sse')
  }

  /**
   * Begins the response; `undefined` if the request does not wait any more.
   * @throws {WebMQError} `E_OPTION_INVALID`; the request stays pending.
   */
  accept(id: UpgradeId, { headers = {} }: AcceptOptions): ServerResponse | undefined {
    checkHeaders(headers)
    const own = Object.keys(headers).find((name) => OWN_HEADERS.has(name.toLowerCase()))
    if (own !== undefined)
      throw new WebMQError('E_OPTION_INVALID', { detail: `header ${own} is written by the transport` })
    const response = this.#take(id)
    if (response === undefined) return undefined
    response.shouldKeepAlive = false
    // The body ends with the connection.
    response.removeHeader('transfer-encoding')
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      // nginx holds events back otherwise.
      'x-accel-buffering': 'no',
      ...headers,
    })
    response.flushHeaders()
    return response
  }

  /** @throws {WebMQError} `E_OPTION_INVALID`; the request stays pending. */
  reject(id: UpgradeId, rejection: Rejection): void {
    const checked = checkRejection(rejection)
    const response = this.#take(id)
    if (response !== undefined) this.#answer(response, checked)
  }

  /** Refuses all pending requests. */
  rejectAll(rejection: Rejection): void {
    for (const id of this.#waiting.keys()) this.reject(id, rejection)
  }

  #take(id: UpgradeId): ServerResponse | undefined {
    const waiting = this.#waiting.get(id)
    clearTimeout(waiting?.timer)
    this.#waiting.delete(id)
    return waiting?.response
  }

  #refuse(response: ServerResponse, code: ErrorCode, details?: RejectionDetails): undefined {
    this.#answer(response, rejectionOf(code, details))
  }

  #answer(response: ServerResponse, { status, headers, body }: Required<Rejection>): void {
    this.#refusedCount++
    response.shouldKeepAlive = false
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
  }
}

function faultOf(head: RequestHead): string | undefined {
  if (valuesOf(head, 'host').length !== 1) return 'Host is missing or was sent twice'
  const hasBody =
    valuesOf(head, 'transfer-encoding').length > 0 || valuesOf(head, 'content-length').some((n) => n !== '0')
  return hasBody ? 'this request has no body' : undefined
}
