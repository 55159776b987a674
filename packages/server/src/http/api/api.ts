import type { IncomingMessage, ServerResponse } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import { HookRefusal } from '../../hooks/index.js'
import { ANONYMOUS, UNIDENTIFIED } from '../../identity/index.js'
import type { Logger } from '../../logger.js'
import { Bodies, hasBody } from '../body.js'
import type { Caller, Callers } from '../caller.js'
import { allowOrigin, answerPreflight } from '../cors.js'
import { sendError, sendJson } from '../responses.js'
import { connectFactsOf, hookCallerOf } from './asking.js'
import { type BudgetLimits, Budgets } from './budgets.js'
import { type Call, type Handler, type HandlerContext, handlers } from './handlers/index.js'
import type { ApiNode } from './node.js'
import { bodyFormatOf, RequestRefusal, readIdempotencyKey, readJson, readQuery } from './read-call.js'
import type { BodySize, Route } from './route.js'
import { ROUTES, type RouteName } from './routes.js'
import { statusOf } from './statuses.js'

/** What an {@link HttpApi} works with. */
export interface HttpApiContext extends Omit<HandlerContext, 'node'> {
  readonly callers: Pick<Callers, 'assertOrigin' | 'callerOf'>
  /** The node, while it runs. */
  readonly node: () => ApiNode | undefined
  /** Whether clients that no token and no hook identifies may do anything. */
  readonly insecure: boolean
  /** Work that one client may cause. */
  readonly work: BudgetLimits
  /** Time from a request head to the end of its body. */
  readonly bodyTimeoutMs: number
  readonly logger: Pick<Logger, 'error' | 'debug'>
}

/** Which routes a port has: an operator's port has all of them. */
export type ApiScope = 'all' | 'clients'

/** Bytes of a body beside one payload: the key, the id, and the names of members. */
const ENVELOPE_BYTES = 8_192
/** JSON may take twice the bytes of what it says, and base64 a third more. */
const JSON_FACTOR = 2
const BATCH_BYTES = 8 * 1024 ** 2
const SMALL_BYTES = 8_192
/** Bytes of all bodies at once. */
const TOTAL_BYTES = 64 * 1024 ** 2
/** Callers with a retryable error may try again after this. */
const RETRY_AFTER_S = 1
const METHOD_NOT_ALLOWED = 405
const FORBIDDEN = 403

interface Found {
  readonly name: RouteName
  readonly route: Route
}

/** The routes by path and method. */
const TABLE = new Map<string, Map<string, Found>>()
for (const [name, route] of Object.entries<Route>(ROUTES)) {
  const methods = TABLE.get(route.path) ?? new Map<string, Found>()
  TABLE.set(route.path, methods.set(route.method, { name: name as RouteName, route }))
}

/** Answers the requests below `/api`: finds the route, asks who calls, checks the request, and calls its handler. */
export class HttpApi {
  readonly #context: HttpApiContext
  readonly #bodies: Bodies
  readonly #budgets: Budgets

  constructor(context: HttpApiContext) {
    this.#context = context
    this.#budgets = new Budgets(context.work)
    this.#bodies = new Bodies({ timeoutMs: context.bodyTimeoutMs, maxTotalBytes: TOTAL_BYTES })
  }

  /** Whether a path is of the API. */
  static serves(path: string): boolean {
    return path === '/api' || path.startsWith('/api/')
  }

  /** Answers one request. */
  async respond(request: IncomingMessage, response: ServerResponse, scope: ApiScope): Promise<void> {
    try {
      await this.#respond(request, response, scope)
    } catch (error) {
      this.#refuse(request, response, error)
    }
  }

  async #respond(request: IncomingMessage, response: ServerResponse, scope: ApiScope): Promise<void> {
    const { callers } = this.#context
    const url = request.url ?? '/'
    const [path = '/'] = url.split('?')
    const methods = TABLE.get(path)
    const [any] = methods?.values() ?? []
    if (methods === undefined || any === undefined) {
      throw new WebMQError('E_PATH_NOT_FOUND', { message: 'no such route; GET /api/openapi.json lists all of them' })
    }
    if (scope === 'clients' && any.route.access === 'operator') {
      throw new WebMQError('E_PATH_NOT_FOUND', { message: 'this route is on the admin port' })
    }
    callers.assertOrigin(request)
    allowOrigin(request, response)
    const allowed = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS']
    if (request.method === 'OPTIONS') return answerPreflight(request, response, allowed)
    const found = methods.get(request.method === 'HEAD' ? 'GET' : (request.method ?? ''))
    if (found === undefined) {
      response.setHeader('allow', allowed.join(', '))
      throw new RequestRefusal(`the method of this route is ${[...methods.keys()].join(', ')}`, METHOD_NOT_ALLOWED)
    }
    const caller = await this.#callerOf(request, found.route)
    sendJson(response, request, 200, (await this.#call(request, response, found, url, caller)) as object)
    this.#charge(caller, Number(response.getHeader('content-length')))
  }

  #charge(caller: Caller | undefined, byteCount: number): void {
    if (caller?.kind === 'client') this.#budgets.charge(caller, byteCount)
  }

  async #callerOf(request: IncomingMessage, { access }: Route): Promise<Caller | undefined> {
    if (access === 'everybody') return undefined
    const caller = await this.#context.callers.callerOf(request)
    if (access === 'operator' && caller.kind !== 'operator') {
      if (caller.identity === ANONYMOUS) {
        throw new WebMQError('E_UNAUTHENTICATED', { detail: 'send Authorization: Bearer <API key>' })
      }
      throw new WebMQError('E_FORBIDDEN', { detail: 'this route needs an API key' })
    }
    if (caller.kind === 'operator') return caller
    this.#budgets.begin(caller)
    const { hooks, insecure } = this.#context
    if (hooks?.hasConnect !== true) return caller
    const known = caller.identity === ANONYMOUS && !insecure ? UNIDENTIFIED : caller.identity
    const identity = await hooks.connect(hookCallerOf(caller), known, connectFactsOf(request))
    return { ...caller, identity }
  }

  #call(
    request: IncomingMessage,
    response: ServerResponse,
    { name, route }: Found,
    url: string,
    caller: Caller | undefined,
  ): unknown {
    const query = readQuery(url, route)
    const idempotencyKey = readIdempotencyKey(request, route)
    const handle = async (body: unknown) => {
      const node = this.#context.node()
      if (node === undefined) throw new WebMQError('E_NOT_RUNNING')
      const handler = handlers[name] as Handler<RouteName>
      // The table has checked each part against the shapes that the handler's types come from.
      return handler({ ...this.#context, node }, { caller, query, body, idempotencyKey } as Call<RouteName>)
    }
    if (route.body === undefined) {
      // No body is wanted, so none is waited for.
      if (hasBody(request)) response.shouldKeepAlive = false
      return handle(undefined)
    }
    const format = bodyFormatOf(request, route)
    const maxBytes = format === 'bytes' ? this.#context.limits.maxPayloadBytes : this.#maxBytesOf(route.body.size)
    return this.#bodies.read(request, response, maxBytes, (bytes) => {
      this.#charge(caller, bytes.length)
      return handle(format === 'bytes' ? bytes : readJson(bytes, route))
    })
  }

  #maxBytesOf(size: BodySize): number {
    const messageBytes = JSON_FACTOR * this.#context.limits.maxPayloadBytes + ENVELOPE_BYTES
    if (size === 'message') return messageBytes
    return size === 'batch' ? Math.max(BATCH_BYTES, messageBytes) : SMALL_BYTES
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (response.headersSent) throw error
    if (response.destroyed) return
    // What is left of a body is not waited for.
    if (!request.complete) response.shouldKeepAlive = false
    if (error instanceof RequestRefusal) {
      sendError(response, request, error.status, error.error)
      return
    }
    const shown = this.#shown(error, request)
    // Its code is the application's, which no table has.
    const status = shown instanceof HookRefusal ? FORBIDDEN : statusOf(shown.code)
    if (status === 401) response.setHeader('www-authenticate', 'Bearer')
    const retryAfterS = 'retryAfterMs' in shown ? Math.ceil(Number(shown.retryAfterMs) / 1_000) : RETRY_AFTER_S
    if (shown.retryable && status !== 401) response.setHeader('retry-after', `${retryAfterS}`)
    sendError(response, request, status, shown)
  }

  /** What the caller may see. Any error but a WebMQError is a bug: the log gets all of it. */
  #shown(error: unknown, request: IncomingMessage): WebMQError {
    const { logger } = this.#context
    if (error instanceof HookRefusal) return error
    const route = request.url?.split('?')[0]
    if (!(error instanceof WebMQError) || statusOf(error.code) === 500) {
      logger.error({ err: error, path: route }, 'a request of the HTTP API could not be answered')
      return new WebMQError('E_INTERNAL')
    }
    // Messages of the broker's library may name hosts.
    if (error.code === 'E_BROKER_UNAVAILABLE' && error.cause !== undefined) return new WebMQError(error.code)
    logger.debug({ code: error.code, path: route }, 'a request of the HTTP API was refused')
    return error
  }
}
