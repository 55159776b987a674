import type { IncomingMessage, ServerResponse } from 'node:http'
import { WebMQError } from 'webmq-client/protocol'
import type { ObservedAction } from '../../../features/observing/observer.js'
import { answerEarly } from '../../../kernel/base/answer-early.js'
import { HookRefusal } from '../../../kernel/base/hook-refusal.js'
import { logBug } from '../../../kernel/base/log-bug.js'
import {
  type Actor,
  type ConnectFacts,
  clientNameOf,
  clientOverHttp,
  isTrusted,
} from '../../../kernel/identity/actor.js'
import { ANONYMOUS, UNIDENTIFIED } from '../../../kernel/identity/index.js'
import { Bodies, type BodySender, FREE_SHARE } from '../body.js'
import { BodyFlow, HeldConnections } from '../body-flow.js'
import { Budgets } from '../budgets.js'
import type { Callers } from '../caller.js'
import type { HttpContext } from '../context.js'
import { allowOrigin, answerPreflight, sendError, sendJson, sendText } from '../responses.js'
import type { FeatureRoute, RoutedNode } from './handlers/handler.js'
import { type Call, type Handler, handlers, RawAnswer } from './handlers/index.js'
import { bodyFormatOf, RequestRefusal, readIdempotencyKey, readJson, readQuery } from './read-call.js'
import type { BodySize, Route } from './route.js'
import { ROUTES, type RouteName } from './routes.js'
import { statusOf } from './statuses.js'

type HttpApiContext = Pick<HttpContext<RoutedNode>, 'options' | 'node' | 'hooks' | 'logger'> & {
  readonly callers: Callers
}

/** Which routes a port has: an operator's port has all of them. */
export type ApiScope = 'all' | 'clients'

/** Bytes of a body beside one payload: the key, the id, and the names of members. */
const ENVELOPE_BYTES = 8_192
/** JSON may take twice the bytes of what it says, and base64 a third more. */
const JSON_FACTOR = 2
/** It is parsed in one go, and others wait meanwhile: for some 15 ms. */
const BATCH_BYTES = 1024 ** 2
const SMALL_BYTES = 8_192
/** Bytes of all bodies of clients at once, or as many as one client needs for the largest one in pieces of a packet each. */
const TOTAL_BYTES = 64 * 1024 ** 2
const TOTAL_PER_BODY = 1.4 * (1 + 1 / FREE_SHARE)
/** Callers with a retryable error may try again after this. */
const RETRY_AFTER_S = 1
/** Connections of a client that write, for each stream that it may have: some have been answered and close. */
const HELD_PER_STREAM = 2

interface Found {
  readonly name: RouteName
  readonly route: Route
}

/** A request, its answer, and what it turns out to be, for the line that tells of its refusal. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Exempts its connection from the limits of short requests. */
  readonly hold: () => void
  /** Absent until the route is found: nothing is told of a path that does not exist. */
  action?: ObservedAction
  /** Absent until the caller has shown who it is. */
  caller?: Actor | undefined
  /** The key. */
  target?: string | undefined
  /** Its body is used while it arrives. */
  flow?: BodyFlow
}

/** Of routes that are no requests of WebSockets under the same name. */
const ACTIONS: { readonly [Name in RouteName]?: ObservedAction } = {
  publishBatch: 'publish',
  writeStream: 'stream',
  readStream: 'read',
}

/** The other routes are those of features. */
const OWN: { readonly [Name in RouteName]?: unknown } = handlers

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
  readonly #held = new HeldConnections()

  constructor(context: HttpApiContext) {
    this.#context = context
    this.#budgets = new Budgets(context.options)
    const maxTotalBytes = Math.max(TOTAL_BYTES, TOTAL_PER_BODY * this.#maxBytesOf('batch'))
    this.#bodies = new Bodies({ timeoutMs: context.options.messageTimeoutMs, maxTotalBytes })
  }

  /** Answers one request. @param hold Exempts its connection from the limits of short requests. */
  async respond(request: IncomingMessage, response: ServerResponse, scope: ApiScope, hold: () => void): Promise<void> {
    const exchange: Exchange = { request, response, hold }
    try {
      await this.#respond(exchange, scope)
    } catch (error) {
      this.#refuse(exchange, error)
    }
  }

  async #respond(exchange: Exchange, scope: ApiScope): Promise<void> {
    const { request, response } = exchange
    const { callers } = this.#context
    const url = request.url ?? '/'
    const [path = '/'] = url.split('?')
    const { streamsPath } = this.#context.options
    if (path.startsWith(`${streamsPath}/`)) {
      const { respondStream } = await import('../stream-address.js')
      const callerOf = async () => (await this.#callerOf(exchange, { access: 'client' })) as Actor
      const charge = (caller: Actor, byteCount: number) => this.#charge(caller, byteCount)
      const senderOf = (caller: Actor) => this.#senderOf(caller)
      const context = { ...this.#context, bodies: this.#bodies, callerOf, charge, senderOf }
      return await respondStream(context, request, response, path.slice(streamsPath.length + 1), exchange)
    }
    const methods = TABLE.get(path)
    const [any] = methods?.values() ?? []
    if (methods === undefined || any === undefined) {
      throw new WebMQError('E_PATH_NOT_FOUND', { message: 'no such route; GET /api/openapi.json lists all of them' })
    }
    if (scope === 'clients' && any.route.access === 'operator') {
      throw new WebMQError('E_PATH_NOT_FOUND', { message: 'this route is on the admin port' })
    }
    const found = methods.get(request.method === 'HEAD' ? 'GET' : (request.method ?? ''))
    if (found !== undefined) exchange.action = ACTIONS[found.name] ?? (found.name as ObservedAction)
    callers.assertOrigin(request)
    allowOrigin(request, response)
    const allowed = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : []), 'OPTIONS']
    if (request.method === 'OPTIONS') {
      answerEarly(request, response)
      return answerPreflight(request, response, allowed)
    }
    if (found === undefined) {
      response.setHeader('allow', allowed.join(', '))
      throw new RequestRefusal(`the method of this route is ${[...methods.keys()].join(', ')}`, 405)
    }
    exchange.target = new URLSearchParams(url.split('?')[1]).get('key') ?? undefined
    const caller = await this.#callerOf(exchange, found.route)
    const answer = await this.#call(exchange, found)
    exchange.flow?.close()
    if (answer instanceof RawAnswer) {
      for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
      sendText(response, request, 200, answer.contentType, answer.body)
    } else sendJson(response, request, 200, answer as object)
    this.#charge(caller, Number(response.getHeader('content-length')))
  }

  #charge(caller: Actor | undefined, byteCount: number): void {
    if (caller?.door === 'http') this.#budgets.charge(caller, byteCount)
  }

  #senderOf(caller: Actor): BodySender {
    return {
      client: isTrusted(caller) ? undefined : clientNameOf(caller),
      charge: (byteCount) => this.#charge(caller, byteCount),
    }
  }

  async #callerOf(exchange: Exchange, { access }: Pick<Route, 'access'>): Promise<Actor | undefined> {
    if (access === 'everybody') return undefined
    const { request } = exchange
    const caller = this.#charged(await this.#context.callers.callerOf(request))
    exchange.caller = caller
    if (access === 'operator' && !isTrusted(caller)) {
      if (caller.identity === ANONYMOUS) {
        throw new WebMQError('E_UNAUTHENTICATED', { detail: 'send Authorization: Bearer <API key>' })
      }
      throw new WebMQError('E_FORBIDDEN', { detail: 'this route needs an API key' })
    }
    if (isTrusted(caller)) return caller
    this.#budgets.begin(caller)
    const { hooks, options } = this.#context
    if (hooks?.has('connect') !== true) return caller
    const { identity: shown = UNIDENTIFIED } = caller
    const known = shown === ANONYMOUS && !options.insecure ? UNIDENTIFIED : shown
    const identity = await hooks.connect(caller, known, connectFactsOf(request))
    exchange.caller = this.#charged(clientOverHttp(identity, caller.address))
    return exchange.caller
  }

  /** A caller whose budget pays for what it makes hooks do, and for what is read for it. */
  #charged(caller: Actor): Actor {
    if (isTrusted(caller)) return caller
    const meter = this.#budgets.meterOf(caller)
    return { ...caller, charge: meter.charge, meter }
  }

  #call(exchange: Exchange, { name, route }: Found): unknown {
    const { request, response, caller, hold } = exchange
    const query = readQuery(request.url ?? '/', route)
    const idempotencyKey = readIdempotencyKey(request, route)
    const { accept, traceparent } = request.headers
    const handle = async (body: unknown) => {
      const node = this.#context.node()
      if (node === undefined) throw new WebMQError('E_NOT_RUNNING')
      const handler = (OWN[name] ?? (await node.routes())[name as FeatureRoute]) as Handler<RouteName>
      // The table has checked each part against the shapes that the handler's types come from.
      return handler({ ...this.#context, node }, {
        caller,
        isGone: () => response.destroyed,
        query,
        body,
        idempotencyKey,
        accept: route.answersRaw === true ? accept : undefined,
        traceparent,
        pay: async (byteCount) => {
          if (caller?.door !== 'http') return
          this.#budgets.charge(caller, byteCount)
          this.#budgets.chargeMessages(caller, 1)
          await this.#budgets.rest(caller)
        },
        spend: (messageCount) => {
          if (caller?.door === 'http') this.#budgets.chargeMessages(caller, messageCount)
        },
      } as Call<RouteName>)
    }
    if (route.body === undefined) {
      // No body is wanted, so none is waited for.
      answerEarly(request, response)
      return handle(undefined)
    }
    const format = bodyFormatOf(request, route)
    if (route.takesFlow === true && format !== 'json') {
      const { maxStreamsPerUser } = this.#context.options
      exchange.flow = new BodyFlow(request, response, format === 'text', () => {
        if (caller?.door === 'http')
          this.#held.add(clientNameOf(caller), HELD_PER_STREAM * maxStreamsPerUser, request.socket)
        hold()
      })
      return handle(exchange.flow)
    }
    const maxBytes = format === 'bytes' ? this.#context.options.maxPayloadBytes : this.#maxBytesOf(route.body.size)
    const sender = this.#senderOf(caller ?? clientOverHttp(undefined, this.#context.callers.addressOf(request)))
    return this.#bodies.read(request, response, sender, maxBytes, (bytes) => {
      const body = format === 'bytes' ? bytes : readJson(bytes, route)
      exchange.target ??= keyIn(body)
      return handle(body)
    })
  }

  #maxBytesOf(size: BodySize): number {
    const messageBytes = JSON_FACTOR * this.#context.options.maxPayloadBytes + ENVELOPE_BYTES
    if (size === 'message') return messageBytes
    return size === 'batch' ? Math.max(BATCH_BYTES, messageBytes) : SMALL_BYTES
  }

  #refuse({ request, response, flow, action, caller, target }: Exchange, error: unknown): void {
    if (response.headersSent) throw error
    if (response.destroyed) return
    if (flow !== undefined) flow.close()
    else answerEarly(request, response)
    const shown = this.#shown(error, request)
    if (action !== undefined) {
      const actor = caller ?? clientOverHttp(undefined, this.#context.callers.addressOf(request))
      this.#context.node()?.refused(actor, action, shown.code, target)
    }
    const status = statusOfRefusal(shown)
    if (shown instanceof RequestRefusal)
      for (const [name, value] of Object.entries(shown.headers)) response.setHeader(name, value)
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
      logBug(logger, { err: error, path: route }, 'a request of the HTTP API could not be answered')
      return new WebMQError('E_INTERNAL')
    }
    // Messages of the broker's library may name hosts.
    if (error.code === 'E_BROKER_UNAVAILABLE' && error.cause !== undefined) return new WebMQError(error.code)
    logger.debug({ code: error.code, path: route }, 'a request of the HTTP API was refused')
    return error
  }
}

function statusOfRefusal(error: WebMQError): number {
  if (error instanceof RequestRefusal) return error.status
  // Its code is the application's, which no table has.
  return error instanceof HookRefusal ? 403 : statusOf(error.code)
}

/** What hooks see of a request, as they see it of an upgrade. */
function connectFactsOf({ url = '/', headers }: Pick<IncomingMessage, 'url' | 'headers'>): ConnectFacts {
  const [path = '/', query = ''] = url.split('?')
  const texts = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  return { path, query, headers: Object.fromEntries(texts) as Readonly<Record<string, string>> }
}

function keyIn(body: unknown): string | undefined {
  const { key } = Object(body) as { readonly key?: unknown }
  return typeof key === 'string' ? key : undefined
}
