import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebMQError } from 'webmq-client/protocol'
import { type Health, readinessOf } from '../health/readiness.js'
import type { Logger } from '../logger.js'
import type { MetricsAudience } from '../options/options.js'
import { isLocalRequest } from './local-request.js'
import { findStaticFile, type StaticFile } from './static-files.js'

/** What an {@link HttpFrontend} works with. */
export interface HttpContext {
  /** Path of the WebSocket endpoint. */
  readonly path: string
  readonly health: () => Health
  /** The content of `/metrics`. */
  readonly metrics: () => Promise<MetricsPage>
  readonly metricsAudience: MetricsAudience
  /** Folders of the demo page and of the client library; absent without a demo page. */
  readonly demo?: { readonly pageFolder: string; readonly clientFolder: string }
  readonly logger: Logger
}

/** Metrics in the text format of Prometheus. */
export interface MetricsPage {
  readonly contentType: string
  readonly text: string
}

/** Allows only files of this server and no inline scripts, so that text in keys and payloads never runs. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const COMMON_HEADERS = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' }

/** Limits for plain HTTP, which serves only probes and the demo page. Further and older connections are closed. */
const MAX_HTTP_CONNECTIONS = 1_024
const MAX_HTTP_CONNECTION_AGE_MS = 60_000
const KEEP_ALIVE_MS = 5_000

/** Answers plain HTTP requests on the server's port. */
export class HttpFrontend {
  /** Never listens by itself; the transport hands over connections. */
  readonly server: Server
  readonly #context: HttpContext
  /** Kept here, because a Node server that does not listen neither tracks connections nor times out slow ones. */
  readonly #connections = new Set<Duplex>()

  constructor(context: HttpContext) {
    this.#context = context
    this.server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
      this.handle(request, response),
    )
    this.server.on('connection', (connection: Duplex) => this.#track(connection))
  }

  /** Answers one request; a bug is logged and answered with 500. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    this.#respond(request, response).catch((error: unknown) => {
      this.#context.logger.error({ err: error, path: request.url }, 'an HTTP request could not be answered')
      if (response.headersSent) response.destroy()
      else sendError(response, request, 500, new WebMQError('E_INTERNAL'))
    })
  }

  /** Closes all connections. */
  close(): void {
    for (const connection of this.#connections) connection.destroy()
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { path: endpoint } = this.#context
    const [path = '/'] = (request.url ?? '/').split('?')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      const code = path === endpoint ? 'E_HANDSHAKE_INVALID' : 'E_UNSUPPORTED'
      return sendError(response, request, 405, new WebMQError(code, { detail: `method ${request.method}` }))
    }
    if (path === '/health') {
      const health = this.#health(request)
      return sendJson(response, request, health.status === 'stopped' ? 503 : 200, { ...health, path: endpoint })
    }
    if (path === '/ready') {
      const readiness = readinessOf(this.#health(request))
      return sendJson(response, request, readiness.status === 'ready' ? 200 : 503, readiness)
    }
    if (path === '/metrics') return await this.#sendMetrics(request, response)
    if (path === endpoint) {
      response.setHeader('upgrade', 'websocket').setHeader('connection', 'upgrade, close')
      return sendError(response, request, 426, new WebMQError('E_HANDSHAKE_INVALID'))
    }
    const file = await this.#findFile(path)
    if (file !== undefined) return sendFile(response, request, file)
    sendError(response, request, 404, new WebMQError('E_PATH_NOT_FOUND'))
  }

  /** Hides the reason of a broker outage from strangers, because it may name hosts and users. */
  #health(request: IncomingMessage): Health {
    const { health, metricsAudience } = this.#context
    const report = health()
    if (metricsAudience === 'all' || (metricsAudience === 'local' && isLocalRequest(request))) return report
    const { reason: _, ...broker } = report.broker
    return { ...report, broker }
  }

  async #sendMetrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { metrics, metricsAudience } = this.#context
    if (metricsAudience === 'off') return sendError(response, request, 404, new WebMQError('E_PATH_NOT_FOUND'))
    if (metricsAudience === 'local' && !isLocalRequest(request)) {
      const detail = 'metrics are for this machine only; set the option metrics to allow others'
      return sendError(response, request, 403, new WebMQError('E_FORBIDDEN', { detail }))
    }
    const { contentType, text } = await metrics()
    sendText(response, request, 200, contentType, text)
  }

  #findFile(path: string): Promise<StaticFile | undefined> | undefined {
    const { demo } = this.#context
    if (demo === undefined) return undefined
    if (path.startsWith('/client/')) return findStaticFile(demo.clientFolder, path.slice('/client/'.length))
    return findStaticFile(demo.pageFolder, path === '/' ? 'index.html' : path.slice(1))
  }

  #track(connection: Duplex): void {
    if (this.#connections.size >= MAX_HTTP_CONNECTIONS) {
      connection.destroy()
      return
    }
    this.#connections.add(connection)
    const age = setTimeout(() => connection.destroy(), MAX_HTTP_CONNECTION_AGE_MS).unref()
    connection.once('close', () => {
      clearTimeout(age)
      this.#connections.delete(connection)
    })
  }
}

async function sendFile(response: ServerResponse, request: IncomingMessage, file: StaticFile): Promise<void> {
  const headers = { ...COMMON_HEADERS, etag: file.etag, 'cache-control': 'no-cache' }
  if (request.headers['if-none-match'] === file.etag) {
    response.writeHead(304, headers).end()
    return
  }
  const body = request.method === 'HEAD' ? undefined : await file.read()
  response.writeHead(200, {
    ...headers,
    'content-type': file.contentType,
    'content-length': body?.length ?? file.byteCount,
    'content-security-policy': CONTENT_SECURITY_POLICY,
  })
  response.end(body)
}

function sendError(response: ServerResponse, request: IncomingMessage, status: number, error: WebMQError): void {
  const { code, message, docs } = error
  sendJson(response, request, status, { code, message, docs })
}

function sendJson(response: ServerResponse, request: IncomingMessage, status: number, json: object): void {
  sendText(response, request, status, 'application/json; charset=utf-8', `${JSON.stringify(json)}\n`)
}

function sendText(
  response: ServerResponse,
  request: IncomingMessage,
  status: number,
  contentType: string,
  body: string,
): void {
  response.writeHead(status, {
    ...COMMON_HEADERS,
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}
