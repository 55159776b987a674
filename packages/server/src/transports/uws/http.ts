import { type ClientRequest, request as createRequest, type Server } from 'node:http'
import type { ErrorCode } from 'webmq-client/protocol'
import type { TransportOptions } from '../../ports/transport.js'
import { createDuplexPair } from './duplex-pair.js'
import { asksForWebSocket, findHandshakeFault, type HandshakeFault } from './handshake.js'
import { UwsHttpResponse } from './http-response.js'
import type { UwsRequest, UwsResponse } from './module.js'
import { type RequestHead, readHead, valuesOf } from './request.js'
import { writeError } from './response.js'

/** RFC 9110 §7.6.1: of one connection only. `expect` is answered by uWebSockets.js. */
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

/** Requests answered at once; more get 503. Each holds a few buffers of 16 KiB, whatever the size of its body. */
const MAX_EXCHANGES = 1_024

/** RFC 9110 §15.5.22 */
const UPGRADE_REQUIRED = { status: 426, detail: 'only WebSocket is spoken here', headers: { upgrade: 'websocket' } }

/** What the bridge has to know about its transport. */
export interface UwsHttpOptions extends Pick<TransportOptions, 'maxHeaderBytes'> {
  readonly httpServer: Server | undefined
  readonly isEncrypted: boolean
}

/**
 * Hands plain HTTP requests to a Node `http` server that listens nowhere: each exchange is a connection inside this process,
 * so that the server, and every framework on it, sees what it always sees. uWebSockets.js parses requests and frames
 * responses, Node does the same once more in between: right for health checks and a demo page, slow for a file server.
 */
export class UwsHttp {
  readonly #options: UwsHttpOptions
  readonly #exchanges = new Set<UwsHttpResponse>()

  constructor(options: UwsHttpOptions) {
    this.#options = options
  }

  /** Takes one request. */
  handle(response: UwsResponse, request: UwsRequest): void {
    const head = readHead(request, response)
    const { httpServer } = this.#options
    const refusal = this.#refusalOf(head)
    if (refusal !== undefined) writeError(response, ...refusal)
    else if (httpServer === undefined) writeError(response, 'E_HANDSHAKE_INVALID', UPGRADE_REQUIRED)
    else this.#exchange(httpServer, head, response)
  }

  /** Breaks off what is under way. */
  close(): void {
    for (const exchange of this.#exchanges) exchange.abort()
    this.#exchanges.clear()
  }

  #refusalOf(head: RequestHead): [code: ErrorCode, fault?: HandshakeFault] | undefined {
    if (head.bytes > this.#options.maxHeaderBytes) return ['E_HEADERS_TOO_LARGE']
    // uWebSockets.js brings handshakes with a key of another length, or without GET, here.
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
      // Node refuses what uWebSockets.js let pass, such as control characters in a header.
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

/** Flat, so that repeated headers stay repeated. */
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
  response.onData((chunk, isLast) => {
    // The chunk is taken back when this returns.
    const isTaken = outgoing.write(Buffer.from(new Uint8Array(chunk)))
    if (isLast) outgoing.end()
    else if (!isTaken && !exchange.isOver) {
      response.pause()
      outgoing.once('drain', () => {
        if (!exchange.isOver) response.resume()
      })
    }
  })
}
