import { assertMayListen } from '../../identity/access.js'
import type { StreamWatch } from '../../streams/watch.js'
import { RequestRefusal } from '../api/read-call.js'
import { goneOf, headerOf, type ReadQuery, STREAM_HEADERS, type StreamCall, standOf } from './call.js'
import { cursorAfter } from './cursor.js'
import { sendEvents } from './events.js'
import { listOf } from './json-values.js'
import { assertKnown, isReached, type Place, parseOffset, startOf } from './offsets.js'
import { presentOf, type StreamView, viewOf } from './view.js'

/** Time that a long poll waits for data. */
const POLL_MS = 10_000
const BAD_REQUEST = 400
const MAX_ETAG_CHARS = 256
/** Reads note so many times per time to live that somebody reads: not every one costs a message of the log. */
const TOUCHES_PER_TTL = 4

/** Answers GET and HEAD. */
export async function readStream(call: StreamCall): Promise<void> {
  const { caller, hooks, key, node, request } = call
  assertMayListen(caller, key)
  const isHead = request.method === 'HEAD'
  const query = isHead ? undefined : queryOf(request.url ?? '')
  await hooks?.listen(caller, 'history', key, true)
  await node.sharedStreams.use(key, async (watch) => {
    if (query === undefined) return sendHead(call, viewOf(watch.fold, Date.now()))
    await node.sharedStreams.expect(watch, () => isReached(query.offset, presentOf(watch.fold)))
    assertKnown(query.offset, watch.fold)
    await touch(call, watch)
    const view = viewOf(watch.fold, Date.now())
    const start = startOf(query.offset, view)
    if (query.live === 'sse') return await sendEvents(call, watch, view, start, query)
    if (query.live === 'long-poll') return await poll(call, watch, view, start, query)
    send(call, view, start, query)
  })
}

/** @throws {RequestRefusal} 400. */
function queryOf(url: string): ReadQuery {
  const parameters = new URLSearchParams(url.split('?')[1])
  const [offset, ...others] = parameters.getAll('offset')
  if (others.length > 0) throw new RequestRefusal('the query has offset twice', BAD_REQUEST)
  const live = parameters.get('live') ?? undefined
  if (live !== undefined && live !== 'long-poll' && live !== 'sse')
    throw new RequestRefusal('live is long-poll or sse', BAD_REQUEST)
  if (live !== undefined && offset === undefined) throw new RequestRefusal('live needs an offset', BAD_REQUEST)
  return {
    offset: offset === undefined ? 'start' : parseOffset(offset),
    live,
    cursor: parameters.get('cursor') ?? undefined,
  }
}

async function touch({ node, key }: StreamCall, { fold }: StreamWatch): Promise<void> {
  const { ttlSeconds } = viewOf(fold, Date.now()).config
  if (ttlSeconds === undefined || fold.shared === undefined || !fold.isActive) return
  const dueMs = fold.shared.touchedMs + (ttlSeconds * 1_000) / TOUCHES_PER_TTL
  if (Date.now() >= dueMs) await node.sharedStreams.touch(key, fold)
}

function sendHead({ response }: StreamCall, view: StreamView): void {
  const { contentType, ttlSeconds, expiresAt } = view.config
  response.writeHead(200, {
    ...STREAM_HEADERS,
    ...standOf(view),
    'content-type': contentType,
    'cache-control': 'no-store',
    ...(ttlSeconds === undefined ? undefined : { 'stream-ttl': `${ttlSeconds}` }),
    ...(expiresAt === undefined ? undefined : { 'stream-expires-at': expiresAt }),
  })
  response.end()
}

/** Sends what there is from an offset on, if the reader does not have it. */
function send({ request, response, charge }: StreamCall, view: StreamView, start: Place, query: ReadQuery): void {
  const { id, bytes, end, isJson, isClosed, config } = view
  const headers = {
    ...STREAM_HEADERS,
    ...standOf(view),
    'stream-up-to-date': 'true',
    // It may grow at any time. Who has it is told so in few bytes.
    'cache-control': query.offset === 'now' ? 'no-store' : 'private, no-cache',
    ...(query.offset === 'now'
      ? undefined
      : { etag: `"${id}:${start.at}:${end.at}:${end.checksum}${isClosed ? ':c' : ''}"` }),
    ...(query.live === undefined ? undefined : { 'stream-cursor': cursorAfter(query.cursor) }),
  }
  const known = headerOf(request, 'if-none-match', MAX_ETAG_CHARS)
  if (known !== undefined && known === headers.etag) {
    response.writeHead(304, headers).end()
    return
  }
  const content = bytes.subarray(start.at)
  const body = isJson ? listOf(content) : content
  response.writeHead(200, { ...headers, 'content-type': config.contentType, 'content-length': Buffer.byteLength(body) })
  response.end(body)
  charge(body.length)
}

async function poll(
  call: StreamCall,
  watch: StreamWatch,
  before: StreamView,
  start: Place,
  query: ReadQuery,
): Promise<void> {
  const { response } = call
  const endMs = performance.now() + POLL_MS
  const signal = goneOf(response)
  let view = before
  while (view.end.at === start.at && !view.isClosed) {
    const { stream, sequence } = watch.fold
    const isOver = () => watch.fold.stream !== stream || watch.fold.sequence > sequence
    if (!(await watch.until(isOver, Math.max(0, endMs - performance.now()), signal))) break
    view = viewOf(watch.fold, Date.now())
    // Another one is at the key, or less is in the log.
    startOf({ stream: before.id, ...start }, view)
  }
  if (response.destroyed) return
  if (view.end.at > start.at) return send(call, view, start, query)
  response.writeHead(204, {
    ...STREAM_HEADERS,
    ...standOf(view),
    'stream-up-to-date': 'true',
    'stream-cursor': cursorAfter(query.cursor),
    'cache-control': 'no-store',
  })
  response.end()
}
