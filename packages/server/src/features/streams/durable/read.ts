import { RequestRefusal } from '../../../doors/http/api/read-call.js'
import { assertMayListen } from '../../../kernel/identity/access.js'
import type { StreamWatch } from '../watch.js'
import { goneOf, headerOf, type ReadQuery, STREAM_HEADERS, type StreamCall, standOf } from './call.js'
import { listOf } from './json-values.js'
import {
  assertKnown,
  cursorAfter,
  formatOffset,
  isReached,
  type Place,
  parseOffset,
  placeAfter,
  startOf,
} from './offsets.js'
import { presentOf, type StreamView, viewOf } from './view.js'

/** Time that a long poll waits for data. */
const POLL_MS = 10_000
const MAX_ETAG_CHARS = 256
/** How often per time to live reads note that somebody reads: not every one costs a message of the log. */
const TOUCHES_PER_TTL = 4

/** Answers GET and HEAD. */
export async function readStream(call: StreamCall): Promise<void> {
  const { caller, author, hooks, key, request, streams } = call
  assertMayListen(caller, key)
  const isHead = request.method === 'HEAD'
  const query = isHead ? undefined : queryOf(request.url ?? '')
  await hooks?.listen(caller, 'history', key, true)
  const answer = async (watch: StreamWatch) => {
    const { offset = 'start', live } = query ?? {}
    const isHere = () => isReached(offset, presentOf(watch.fold))
    // It is told later what there is: an event stream goes on, and a long poll from a place is asked again.
    const goesOn = live === 'sse' ? offset !== 'now' : live === 'long-poll' && typeof offset === 'object'
    if (!(goesOn && isHere())) {
      try {
        await streams.reachEnd(watch, author)
      } catch (error) {
        // While the broker is away there is what there was. Who asks for more is told to come again.
        if (!isHere()) throw error
      }
    }
    if (query === undefined) return sendHead(call, viewOf(watch.fold, Date.now()))
    assertKnown(query.offset, watch.fold)
    touch(call, watch)
    const view = viewOf(watch.fold, Date.now())
    const start = startOf(query.offset, view)
    if (query.live === 'sse') return await sendEvents(call, watch, view, start, query)
    if (query.live === 'long-poll') return await poll(call, watch, view, start, query)
    send(call, view, start, query)
  }
  await streams.use(key, answer, author)
}

/** @throws {RequestRefusal} 400. */
function queryOf(url: string): ReadQuery {
  const parameters = new URLSearchParams(url.split('?')[1])
  const [offset, ...others] = parameters.getAll('offset')
  if (others.length > 0) throw new RequestRefusal('the query has offset twice', 400)
  const live = parameters.get('live') ?? undefined
  if (live !== undefined && live !== 'long-poll' && live !== 'sse')
    throw new RequestRefusal('live is long-poll or sse', 400)
  if (live !== undefined && offset === undefined) throw new RequestRefusal('live needs an offset', 400)
  return {
    offset: offset === undefined ? 'start' : parseOffset(offset),
    live,
    cursor: parameters.get('cursor') ?? undefined,
  }
}

function touch({ streams, key }: StreamCall, { fold }: StreamWatch): void {
  const { ttlSeconds } = viewOf(fold, Date.now()).config
  if (ttlSeconds === undefined || fold.shared === undefined || !fold.isActive) return
  const dueMs = fold.shared.touchedMs + (ttlSeconds * 1_000) / TOUCHES_PER_TTL
  if (Date.now() >= dueMs) streams.touch(key, fold)
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

/** An answer ends before its connection is too old, and the reader asks again. */
const ANSWER_MS = 50_000
/** Bytes of one event: a reader that does not read keeps these in memory. */
const EVENT_BYTES = 65_536
const NEWLINE = 10
/** The first byte of a character in UTF-8 is none of `10xxxxxx`. */
const isWithin = (byte = 0) => (byte & 0xc0) === 0x80
const MAX_CHARACTER_BYTES = 4

/** Sends a stream as server-sent events, as it grows. */
async function sendEvents(
  { response, charge }: StreamCall,
  watch: StreamWatch,
  first: StreamView,
  start: Place,
  { cursor }: ReadQuery,
): Promise<void> {
  const endMs = performance.now() + ANSWER_MS
  const signal = goneOf(response)
  response.writeHead(200, {
    ...STREAM_HEADERS,
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    ...(first.isText ? undefined : { 'stream-sse-data-encoding': 'base64' }),
  })
  let view: StreamView | undefined = first
  let place = start
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const { stream, sequence } = watch.fold
    // The next request is told why.
    if (view === undefined || view.id !== first.id || view.isText !== first.isText || view.end.at < place.at) break
    const end = endOfEvent(view, place.at)
    const isAll = end === view.end.at
    if (end > place.at || isFirst || (view.isClosed && isAll)) {
      const next = placeAfter(view, place, end)
      const text = eventsOf(view, place.at, next, cursor)
      place = next
      charge(text.length)
      if (!response.write(text)) await drained(response, signal)
    }
    if (view.isClosed && isAll) break
    const hasMore = !isAll && endOfEvent(view, end) > end
    const isOver = () => watch.fold.stream !== stream || watch.fold.sequence > sequence
    const leftMs = endMs - performance.now()
    if (leftMs <= 0 || !(hasMore || (await watch.until(isOver, leftMs, signal)))) break
    view = presentOf(watch.fold)
  }
  response.end()
}

/** Where an event that begins here ends: text is not cut within a character, and JSON not within a value. */
function endOfEvent({ bytes, end: { at: end }, isClosed, isJson, isText }: StreamView, at: number): number {
  const limit = Math.min(end, at + EVENT_BYTES)
  if (isJson) {
    if (limit === end) return end
    const last = bytes.lastIndexOf(NEWLINE, limit - 1)
    return (last >= at ? last : bytes.indexOf(NEWLINE, at)) + 1
  }
  if (!isText || (limit === end && isClosed)) return limit
  let last = limit - 1
  while (last > at && last > limit - MAX_CHARACTER_BYTES && isWithin(bytes[last])) last--
  return last >= at && byteCountOf(bytes[last]) > limit - last ? last : limit
}

/** Bytes of a character, by its first one. */
function byteCountOf(byte = 0): number {
  if (byte < 0xc0) return 1
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}

/** The data, if any, and where the reader is afterwards. */
function eventsOf(view: StreamView, at: number, next: Place, cursor: string | undefined): string {
  const content = view.bytes.subarray(at, next.at)
  const data = view.isJson ? listOf(content) : content.toString(view.isText ? 'utf8' : 'base64')
  const isAll = next.at === view.end.at
  const isEnd = view.isClosed && isAll
  const control = {
    streamNextOffset: formatOffset(view.id, next),
    ...(isEnd ? undefined : { streamCursor: cursorAfter(cursor) }),
    ...(isAll ? { upToDate: true } : undefined),
    ...(isEnd ? { streamClosed: true } : undefined),
    ...(isEnd && view.defect !== undefined ? { streamStatus: view.defect } : undefined),
  }
  return (next.at > at ? eventOf('data', data) : '') + eventOf('control', JSON.stringify(control))
}

function eventOf(name: string, data: string): string {
  // One space in front belongs to the event stream.
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data:${line.startsWith(' ') ? ' ' : ''}${line}\n`)
  return `event: ${name}\n${lines.join('')}\n`
}

function drained(response: StreamCall['response'], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    response.once('drain', resolve)
    signal.addEventListener('abort', () => resolve())
  })
}
