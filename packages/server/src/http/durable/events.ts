import type { StreamWatch } from '../../streams/watch.js'
import { goneOf, type ReadQuery, STREAM_HEADERS, type StreamCall } from './call.js'
import { cursorAfter } from './cursor.js'
import { listOf } from './json-values.js'
import { formatOffset, type Place, placeAfter } from './offsets.js'
import { presentOf, type StreamView } from './view.js'

/** An answer ends before its connection is too old, and the reader asks again. */
const ANSWER_MS = 50_000
/** Bytes of one event, and so what a reader that does not read keeps in memory. */
const EVENT_BYTES = 65_536
const NEWLINE = 10
/** The first byte of a character in UTF-8 is none of `10xxxxxx`. */
const isWithin = (byte = 0) => (byte & 0xc0) === 0x80
const MAX_CHARACTER_BYTES = 4

/** Sends a stream as server-sent events, as it grows. */
export async function sendEvents(
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

/** Where an event that begins here ends: what is text is not cut within a character, and JSON not within a value. */
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
