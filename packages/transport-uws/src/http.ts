import { type ClientRequest, request as createRequest, type Server } from 'node:http'
import type { ErrorCode } from 'webmq-client/protocol'
import type { TransportOptions } from 'webmq-server/ports'
import {
  asksForWebSocket,
  findHandshakeFault,
  type HandshakeFault,
  type RequestHead,
  UPGRADE_REQUIRED,
  valuesOf,
} from 'webmq-server/transports'
import { createDuplexPair } from './duplex-pair.js'
import { UwsHttpResponse } from './http-response.js'
import type { UwsRequest, UwsResponse } from './module.js'
import { readHead } from './request.js'
import { writeError } from './response.js'

/** RFC 9110 §7.6.1: headers of one connection. uWebSockets.js answers `expect`. */
const NOT_FORWARDED = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Most concurrent requests; further ones get 503. Each uses a few buffers of 16 KiB, for bodies of any size. */
const MAX_EXCHANGES = 1_024

/**
 * uWebSockets.js ends a body of which less than 160 KiB come in 10 s. Each `resume` begins this time anew: the server has
 * limits of its own for slow bodies.
 */
const RENEWAL_MS = 4_000

/** Options of the bridge. */
export interface UwsHttpOptions extends Pick<TransportOptions, 'host' | 'maxHeaderBytes'> {
  readonly httpServer: Server | undefined
  readonly isEncrypted: boolean
}

/**
 * Passes plain HTTP requests to a Node `http` server that does not listen. Each exchange is an in-process connection, so
 * the server and its frameworks work as usual. Requests and responses are parsed twice, by uWebSockets.js and by Node.
 * That is fine for health checks and a demo page, but slow for a file server.
 */
export class UwsHttp {
  readonly #options: UwsHttpOptions
  readonly #exchanges = new Set<UwsHttpResponse>()

  constructor(options: UwsHttpOptions) {
    this.#options = options
  }

  /** Handles one request. */
  handle(response: UwsResponse, request: UwsRequest): void {
    const head = readHead(request, response, this.#options.host)
    const { httpServer } = this.#options
    const refusal = this.#refusalOf(head)
    if (refusal !== undefined) writeError(response, ...refusal)
    else if (httpServer === undefined) writeError(response, 'E_HANDSHAKE_INVALID', UPGRADE_REQUIRED)
    else this.#exchange(httpServer, head, response)
  }

  /** Aborts all exchanges. */
  close(): void {
    for (const exchange of this.#exchanges) exchange.abort()
    this.#exchanges.clear()
  }

  #refusalOf(head: RequestHead): [code: ErrorCode, fault?: HandshakeFault] | undefined {
    if (head.bytes > this.#options.maxHeaderBytes) return ['E_HEADERS_TOO_LARGE']
    // uWebSockets.js also routes handshakes here that have a key of another length or a method other than GET.
    const fault = asksForWebSocket(head) ? findHandshakeFault(head) : undefined
    if (fault !== undefined) return ['E_HANDSHAKE_INVALID', fault]
    return this.#exchanges.size >= MAX_EXCHANGES ? ['E_CONNECTION_LIMIT'] : undefined
  }

  #exchange(httpServer: Server, head: RequestHead, response: UwsResponse): void {
    const { remoteAddress, remotePort } = head
    const [near, far] = createDuplexPair({ remoteAddress, remotePort, encrypted: this.#options.isEncrypted })
    let outgoing: ClientRequest
    try {
      outgoing = createRequest({
        createConnection: () => near,
        method: head.method,
        path: head.query === '' ? head.path : `${head.path}?${head.query}`,
        headers: forwardedHeaders(head),
        setHost: false,
      })
    } catch {
      // Node refuses some requests that uWebSockets.js accepts, such as control characters in a header.
      near.destroy()
      writeError(response, 'E_HANDSHAKE_INVALID', { detail: 'request is not valid HTTP' })
      return
    }
    const exchange = new UwsHttpResponse(response, () => near.destroy())
    this.#exchanges.add(exchange)
    near.once('close', () => this.#exchanges.delete(exchange))
    outgoing.once('response', (incoming) => exchange.forward(incoming, head.method))
    outgoing.once('error', () => {
      exchange.fail((unanswered) => writeError(unanswered, 'E_INTERNAL', { status: 502, detail: 'no response' }))
    })
    httpServer.emit('connection', far)
    forwardBody(head, response, exchange, outgoing)
  }
}

/** A flat list keeps repeated headers. */
function forwardedHeaders(head: RequestHead): string[] {
  const headers = head.headers.filter(([name]) => !NOT_FORWARDED.has(name)).flat()
  const [length] = valuesOf(head, 'content-length')
  if (valuesOf(head, 'transfer-encoding').length > 0) headers.push('transfer-encoding', 'chunked')
  else if (length !== undefined) headers.push('content-length', length)
  return headers
}

function forwardBody(
  head: RequestHead,
  response: UwsResponse,
  exchange: UwsHttpResponse,
  outgoing: ClientRequest,
): void {
  const hasBody = ['content-length', 'transfer-encoding'].some((name) => valuesOf(head, name).length > 0)
  if (!hasBody) {
    outgoing.end()
    return
  }
  // The answer may come before the body.
  outgoing.flushHeaders()
  let isPaused = false
  const renewal = setInterval(() => {
    if (exchange.isOver || isPaused) return
    response.pause()
    response.resume()
  }, RENEWAL_MS)
  outgoing.once('close', () => clearInterval(renewal))
  response.onData((chunk, isLast) => {
    // The chunk is valid only during this call.
    const isTaken = outgoing.write(Buffer.from(new Uint8Array(chunk)))
    if (isLast) {
      clearInterval(renewal)
      outgoing.end()
    } else if (!isTaken && !isPaused && !exchange.isOver) {
      isPaused = true
      response.pause()
      outgoing.once('drain', () => {
        isPaused = false
        if (!exchange.isOver) response.resume()
      })
    }
  })
}
