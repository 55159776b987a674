import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebMQError } from 'webmq-client/protocol'
import { readinessOf } from '../../features/observing/health/readiness.js'
import { answerEarly } from '../../kernel/base/answer-early.js'
import { logBug } from '../../kernel/base/log-bug.js'
import { TurnQueue } from '../../kernel/base/turn-queue.js'
import { isLoopbackHost } from '../../kernel/identity/trusted-proxies.js'
import type { TransportAddress } from '../../kernel/ports/transport.js'
import type { MetricsAudience, ResolvedOptions } from '../options/server-options.js'
import type { AdminPage } from './admin/page.js'
import type { ApiScope, HttpApi } from './api/api.js'
import { RequestCharges } from './budgets.js'
import type { Callers } from './caller.js'
import { HttpConnections, type HttpLimits, type HttpStats } from './connections.js'
import type { HttpContext, MetricsPage } from './context.js'
import {
  allowOrigin,
  answerPreflight,
  findStaticFile,
  type StaticFile,
  sendError,
  sendFile,
  sendJson,
  sendText,
} from './responses.js'

export interface FrontendContext extends Pick<HttpContext, 'health' | 'logger' | 'metrics'> {
  readonly options: Pick<
    ResolvedOptions,
    'httpKeepAliveMs' | 'path' | 'sse' | 'ssePath' | 'streamsPath' | 'tokenCookie' | 'workPerSecond'
  >
  readonly callers: Pick<Callers, 'addressOf' | 'isLocal' | 'isOriginAllowed' | 'isProxy'>
  readonly takeStream?: HttpContext['takeStream']
  /** Read for each request: it may change. */
  readonly metricsAudience: MetricsAudience
  /** Whether WebSockets, event streams and the demo page are on this port too. */
  readonly hasEndpoint: boolean
  readonly demo?: HttpContext['demo']
  /** The HTTP API, and the routes of it that this port has; absent without one. */
  readonly api?: { readonly respond: HttpApi['respond']; readonly scope: ApiScope }
  /** The page for operators; absent on a port for clients, and without API keys. */
  readonly admin?: AdminPage
  readonly limits?: Partial<HttpLimits>
}

/** A page of metrics costs a millisecond or two of the event loop, so those who ask within this time share one. */
const METRICS_SHARED_MS = 100
/**
 * Requests that begin between two looks at the sockets, and more as long as all take no longer than a round of connections: each
 * takes some 0.2 ms.
 */
const REQUESTS_PER_TURN = 8
const TURN_MS = 2

export class HttpFrontend {
  /** Gets the connections of the transport, or listens. */
  readonly server: Server
  readonly #context: FrontendContext
  readonly #connections: HttpConnections
  readonly #charges: RequestCharges
  readonly #turns = new TurnQueue<() => void>(REQUESTS_PER_TURN, (answer) => answer(), { turnMs: TURN_MS })
  #metrics: { readonly atMs: number; readonly page: Promise<MetricsPage> } | undefined

  constructor(context: FrontendContext) {
    this.#context = context
    const { callers, limits, options } = context
    const { httpKeepAliveMs } = options
    this.#connections = new HttpConnections({ maxIdleMs: httpKeepAliveMs, ...limits }, (peer) => callers.isProxy(peer))
    this.#charges = new RequestCharges(context, this.#connections)
    this.server = createServer({ keepAliveTimeout: httpKeepAliveMs, requestTimeout: 0 }, (request, response) =>
      this.handle(request, response),
    )
    // Without a `100 Continue`, the client does not send the body.
    this.server.on('checkContinue', (request, response) => this.handle(request, response))
    this.server.on('connection', (connection: Duplex) => this.#connections.open(connection))
    // The transport listens too, and takes it. With a listener that takes none, upgrades would get no answer.
    if (context.hasEndpoint) this.server.on('upgrade', ({ socket }) => this.#connections.upgrade(socket))
  }

  /** Answers one request; a bug is logged and answered with 500. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    if (!this.#connections.begin(request.socket, response)) return
    this.#turns.push(() => {
      if (!request.socket.destroyed) this.#answer(request, response)
    })
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#respond(request, response).catch((error: unknown) => {
      logBug(this.#context.logger, { err: error, path: request.url }, 'an HTTP request could not be answered')
      if (response.headersSent) response.destroy()
      else sendError(response, request, 500, new WebMQError('E_INTERNAL'))
    })
  }

  stats(): HttpStats {
    return this.#connections.stats()
  }

  /**
   * Opens the admin port. The server's own port is that of the transport.
   * @param port 0 for a free one.
   * @throws {WebMQError} `E_ADDRESS_IN_USE`, `E_ADDRESS_UNAVAILABLE`.
   */
  async listen(port: number, host: string): Promise<TransportAddress> {
    const { server } = this
    try {
      await once(server.listen(port, host), 'listening')
    } catch (cause) {
      const isTaken = cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE'
      const detail = `adminPort ${port} of ${host}`
      throw new WebMQError(isTaken ? 'E_ADDRESS_IN_USE' : 'E_ADDRESS_UNAVAILABLE', { detail, cause })
    }
    server.on('error', (err) => this.#context.logger.error({ err }, 'the admin port failed'))
    const { address, port: opened } = server.address() as AddressInfo
    return { host: address, port: opened }
  }

  /** Closes all connections, and the port if it has one. */
  close(): void {
    if (this.server.listening) this.server.close()
    this.#connections.close()
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { api, callers, hasEndpoint, options } = this.#context
    const leave = this.#connections.enter(callers.addressOf(request), response)
    if (leave === undefined)
      return this.#refuse(request, response, 1, 'too many requests of this client are in progress')
    const endpoint = hasEndpoint ? options.path : undefined
    const [path = '/'] = (request.url ?? '/').split('?')
    const isStream = hasEndpoint && isBelow(path, options.streamsPath)
    // The endpoint may have a path below `/api`.
    if (api !== undefined && (isStream || isBelow(path, '/api')) && path !== endpoint) {
      await api.respond(request, response, api.scope, () => {
        this.#connections.hold(request.socket)
        leave()
      })
      // Guesses at tokens, keys and paths; what is left of a budget says nothing about those who may ask.
      if (response.statusCode >= 400) this.#charges.charge(request, response, path)
      return
    }
    const waitMs = this.#charges.charge(request, response, path)
    if (waitMs > 0) return this.#refuse(request, response, Math.ceil(waitMs / 1_000), 'this client asks too often')
    // No body is wanted, so none is waited for.
    answerEarly(request, response)
    const isEventStream = hasEndpoint && options.sse === 'on' && path === options.ssePath
    if (isEventStream) return this.#answerStreamRequest(request, response)
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      const code = path === endpoint ? 'E_HANDSHAKE_INVALID' : 'E_UNSUPPORTED'
      return sendError(response, request, 405, new WebMQError(code, { detail: `method ${request.method}` }))
    }
    if (path === '/health') return this.#sendHealth(request, response)
    if (path === '/ready') return this.#sendReadiness(request, response)
    if (path === '/metrics') return await this.#sendMetrics(request, response)
    if (path === endpoint) {
      response.setHeader('upgrade', 'websocket').setHeader('connection', 'upgrade, close')
      return sendError(response, request, 426, new WebMQError('E_HANDSHAKE_INVALID'), this.#identity(request, response))
    }
    if ((await this.#context.admin?.respond(path, request, response)) === true) return
    const file = await this.#findFile(path)
    if (file !== undefined) return sendFile(response, request, file)
    const identity = hasEndpoint ? this.#identity(request, response) : undefined
    sendError(response, request, 404, new WebMQError('E_PATH_NOT_FOUND'), identity)
  }

  #refuse(request: IncomingMessage, response: ServerResponse, retryAfterS: number, detail: string): void {
    answerEarly(request, response)
    response.setHeader('retry-after', `${retryAfterS}`)
    sendError(response, request, 429, new WebMQError('E_RATE_LIMIT', { detail }))
  }

  /**
   * The transport serves event streams; a request that is not the first of its connection comes here, and is given back to it. What
   * else comes here is a preflight (CORS), a wrong method, or a request to a server without streams.
   */
  #answerStreamRequest(request: IncomingMessage, response: ServerResponse): void {
    const { origin, host } = request.headers
    const { callers, options } = this.#context
    if (origin !== undefined && callers.isOriginAllowed(origin, host)) {
      if (options.tokenCookie !== undefined) response.setHeader('access-control-allow-credentials', 'true')
      if (request.method === 'OPTIONS') {
        answerPreflight(request, response, ['GET'])
        return
      }
      allowOrigin(request, response)
    }
    if (request.method === 'GET') {
      const isTaken = this.#takeStream(request, response)
      if (isTaken === true) {
        this.#connections.release(request.socket)
        return
      }
      if (isTaken === false) {
        // Behind the engine's own TLS: a new connection gets it, whose first request it is.
        response.shouldKeepAlive = false
        response.writeHead(307, { location: request.url ?? '/', 'cache-control': 'no-store' }).end()
        return
      }
      const detail = 'event streams are served by the transports native and ws, on their own port'
      sendError(response, request, 501, new WebMQError('E_UNSUPPORTED', { detail }))
      return
    }
    response.setHeader('allow', 'GET')
    sendError(response, request, 405, new WebMQError('E_UNSUPPORTED', { detail: `method ${request.method}` }))
  }

  /** `undefined`: there are no streams here; `false`: there are, but not on this connection. */
  #takeStream(request: IncomingMessage, response: ServerResponse): boolean | undefined {
    const pendingCount = this.#connections.pendingCountOf(request.socket)
    if (pendingCount === undefined) return undefined
    return pendingCount === 1 ? this.#context.takeStream?.(request, response) : false
  }

  /** Pages of every origin may read an answer with it: after a failed upgrade, it is all that a browser can learn. */
  #identity(request: IncomingMessage, response: ServerResponse): object {
    const { callers, options } = this.#context
    const originAllowed = callers.isOriginAllowed(originOf(request), request.headers.host)
    response.setHeader('access-control-allow-origin', '*')
    return { server: 'webmq', path: options.path, originAllowed }
  }

  #sendHealth(request: IncomingMessage, response: ServerResponse): void {
    const report = this.#context.health()
    sendJson(response, request, report.status === 'stopped' ? 503 : 200, {
      ...(this.#maySeeDetails(request) ? report : { status: report.status }),
      ...this.#identity(request, response),
    })
  }

  #sendReadiness(request: IncomingMessage, response: ServerResponse): void {
    const readiness = readinessOf(this.#context.health(), /[?&]full=503(?:&|$)/.test(request.url ?? ''))
    const { status } = readiness
    sendJson(response, request, status === 'ready' ? 200 : 503, this.#maySeeDetails(request) ? readiness : { status })
  }

  /** Whether the version, the load and the reason of an outage, which may name hosts and users, are for this request. */
  #maySeeDetails(request: IncomingMessage): boolean {
    const { metricsAudience, callers } = this.#context
    return metricsAudience === 'all' || (metricsAudience === 'local' && callers.isLocal(request))
  }

  async #sendMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { metrics, metricsAudience } = this.#context
    if (metricsAudience === 'off') return sendError(response, request, 404, new WebMQError('E_PATH_NOT_FOUND'))
    if (!this.#maySeeDetails(request)) {
      const detail = 'metrics are for this machine only; set the option metrics to allow others'
      return sendError(response, request, 403, new WebMQError('E_FORBIDDEN', { detail }))
    }
    const nowMs = performance.now()
    if (this.#metrics === undefined || nowMs - this.#metrics.atMs >= METRICS_SHARED_MS) {
      this.#metrics = { atMs: nowMs, page: metrics() }
    }
    const { contentType, text } = await this.#metrics.page
    sendText(response, request, 200, contentType, text)
  }

  #findFile(path: string): Promise<StaticFile | undefined> | undefined {
    const { demo } = this.#context
    if (demo === undefined) return undefined
    if (path.startsWith('/client/')) return findStaticFile(demo.clientFolder, path.slice('/client/'.length))
    return findStaticFile(demo.pageFolder, path === '/' ? 'index.html' : path.slice(1))
  }
}

function isBelow(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === '/')
}

/**
 * Browsers send no `Origin` with a GET to the page's own host. They say that it is one, if the page came over https or
 * from this machine, and which page asks: a proxy may have written another `Host`.
 */
function originOf({ headers }: IncomingMessage): string | undefined {
  const { origin, host, referer } = headers
  if (origin !== undefined || headers['sec-fetch-site'] !== 'same-origin') return origin
  if (referer !== undefined && URL.canParse(referer)) return new URL(referer).origin
  return `${isLoopbackHost(host) ? 'http' : 'https'}://${host}`
}
