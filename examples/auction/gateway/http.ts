import { createServer, type IncomingMessage, type Server } from 'node:http'
import { bidInput, itemId, itemInput, pageInput } from './input'
import { MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_REQUESTS, REQUEST_TIMEOUT_MS } from './limits'
import { Refusal } from './refusal'
import type { Store } from './store'

/** What the routes need. */
export interface Backend {
  readonly store: Store
  /** Throws while bids are not decided, or not published. */
  assertHealthy(): Promise<Readonly<Record<string, unknown>>>
}

const LOG_INTERVAL_MS = 1_000

interface Answer {
  readonly status: number
  readonly body: unknown
}

type Route = (backend: Backend, request: IncomingMessage, id: string, query: URLSearchParams) => Promise<Answer>

const ok = (body: unknown): Answer => ({ status: 200, body })

/** By path, where `:id` stands for the id of an item, and by method. */
const ROUTES: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  '/items': {
    GET: async ({ store }) => ok(await store.openItems()),
    POST: async ({ store }, request) => ({ status: 201, body: await store.open(itemInput(await jsonOf(request))) }),
  },
  '/items/:id': { GET: async ({ store }, _, id) => ok(await store.read(itemId(id))) },
  '/items/:id/bids': {
    async POST({ store }, request, id) {
      const { isKnown, ...body } = await store.bid(itemId(id), bidInput(await jsonOf(request)))
      return { status: isKnown ? 200 : 201, body }
    },
  },
  '/items/:id/events': {
    GET: async ({ store }, _, id, query) => ok(await store.events(itemId(id), pageInput(query))),
  },
  '/time': { GET: async ({ store }) => ok({ unixUs: await store.nowUs() }) },
  '/health': { GET: async (backend) => ok(await backend.assertHealthy()) },
}

/** The HTTP API of a gateway; every answer is JSON, and a refusal has a `reason`. */
export function createApi(backend: Backend): Server {
  let requestCount = 0
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS })
  server.maxConnections = MAX_CONNECTIONS
  server.on('request', async (request, response) => {
    requestCount++
    const { status, body } = await answer(backend, request, requestCount > MAX_REQUESTS).catch(refused)
    requestCount--
    const text = JSON.stringify(body)
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      // The rest of a body that was not read is not the next request.
      ...(!request.complete && { connection: 'close' }),
    })
    response.end(text)
  })
  return server
}

async function answer(backend: Backend, request: IncomingMessage, isBusy: boolean): Promise<Answer> {
  if (isBusy) throw new Refusal(503, 'busy', { maxRequests: MAX_REQUESTS })
  const url = `http://gateway${request.url}`
  if (!URL.canParse(url)) throw new Refusal(400, 'url')
  const { pathname, searchParams } = new URL(url)
  const [, items, id = '', rest] = pathname.split('/')
  const path = id === '' ? pathname : `/${items}/:id${pathname.slice(`/${items}/${id}`.length)}`
  const methods = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined
  if (methods === undefined || rest === '') throw new Refusal(404, 'unknown-path')
  const method = request.method ?? ''
  const route = Object.hasOwn(methods, method) ? methods[method] : undefined
  if (route === undefined) throw new Refusal(405, 'method', { allowed: Object.keys(methods) })
  return await route(backend, request, id, searchParams)
}

function refused(error: unknown): Answer {
  if (error instanceof Refusal) return { status: error.status, body: { reason: error.reason, ...error.details } }
  // Redis is away, or did not answer: whether a bid was taken is unknown, and a retry with its id tells.
  logNowAndThen(error)
  return { status: 503, body: { reason: 'unavailable' } }
}

let loggedAtMs = Number.NEGATIVE_INFINITY

/** An outage refuses every request; a line per second says enough. */
function logNowAndThen(error: unknown): void {
  const nowMs = performance.now()
  if (nowMs - loggedAtMs < LOG_INTERVAL_MS) return
  loggedAtMs = nowMs
  console.error('A request was refused:', error)
}

/** @throws {Refusal} `content-type`, `too-large`, `no-json` */
async function jsonOf(request: IncomingMessage): Promise<unknown> {
  // A page of another origin can send no other type without being asked first.
  if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? '')) throw new Refusal(415, 'content-type')
  const tooLarge = new Refusal(413, 'too-large', { maxBytes: MAX_BODY_BYTES })
  if (Number(request.headers['content-length']) > MAX_BODY_BYTES) throw tooLarge
  const chunks: Buffer[] = []
  let byteCount = 0
  for await (const chunk of request) {
    byteCount += chunk.length
    if (byteCount > MAX_BODY_BYTES) throw tooLarge
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    throw new Refusal(400, 'no-json')
  }
}
