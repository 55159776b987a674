import { randomBytes } from 'node:crypto'
import { refusalOf } from 'webmq-client/protocol'
import { assertUnencoded, RequestRefusal } from '../../../doors/http/api/read-call.js'
import type { StreamFold } from '../fold.js'
import type { StreamConfig } from '../shared-config.js'
import type { Mark, Producer } from '../shared-state.js'
import type { SharedWrite } from '../shared-streams.js'
import { STREAM_HEADERS, type StreamCall, standOf } from './call.js'
import { type AppendHead, appendHeadOf, assertAhead, configOf, isSameConfig } from './heads.js'
import { areLines, linesOf } from './json-values.js'
import { essenceOf, notFound, phaseOf, type StreamView, viewOf } from './view.js'

const ID_BYTES = 16
const MAX_PRODUCERS = 1_000
/** Of a JSON body, beside its bytes. */
const PARTS_PER_UNIT = 5
const NOTHING = new Uint8Array()

type Next = Omit<SharedWrite, 'stream' | 'sequence' | 'isBinary' | 'mark'> & { readonly mark?: Partial<Mark> }

/** Answers PUT: there is such a stream afterwards. */
export async function createStream(call: StreamCall): Promise<void> {
  const { request, response, streams, author, key } = call
  const { config, isClosed } = configOf(request)
  await withBody(call, async (body) => {
    // One time for all that it decides: a slow broker does not end what it has just begun.
    const nowMs = Date.now()
    assertAhead(config, nowMs)
    const content = contentOf(call, essenceOf(config.contentType) === 'application/json', body)
    const isPending = content.length > 0 || isClosed
    const meta = Buffer.from(JSON.stringify({ ...config, ...(isPending ? { isPending } : undefined) }))
    let id = ''
    let deleted: string | undefined
    let found: StreamView | undefined
    await streams.compete(author, key, (fold) => {
      const phase = phaseOf(fold, nowMs)
      if (fold.stream === id && phase === 'pending') {
        // It is there as a whole, or not at all.
        const payload = content.length > 0 ? content : NOTHING
        return next(fold, { kind: isClosed ? 'close' : 'append', payload })
      }
      if (phase === 'none') {
        id = randomBytes(ID_BYTES).toString('base64url')
        return { stream: id, sequence: 0, kind: 'start', payload: meta, isBinary: false, mark: { atMs: nowMs } }
      }
      if (phase !== 'present' && !fold.isCut) {
        // By the clock of another node, what it has just begun there is not over.
        if ((deleted ?? fold.stream) !== fold.stream)
          throw refusalOf('E_NODE_BEHIND', { detail: 'the clocks of the nodes differ' })
        deleted = fold.stream
        return next(fold, { kind: 'delete', payload: NOTHING })
      }
      found = viewOf(fold, nowMs)
      if (found.id !== id) assertSame(fold, found, config, isClosed)
      return undefined
    })
    if (found === undefined) throw notFound()
    const isNew = found.id === id
    response.writeHead(isNew ? 201 : 200, {
      ...STREAM_HEADERS,
      ...standOf(found),
      'content-type': found.config.contentType,
      // A path: what the request says of its host and scheme may be anything.
      ...(isNew ? { location: `${call.options.streamsPath}/${encodeURIComponent(key)}` } : undefined),
    })
    response.end()
  })
}

/** Answers POST: appends, closes, or both at once. */
export async function appendToStream(call: StreamCall): Promise<void> {
  const { request, response, streams, author, key } = call
  const head = appendHeadOf(request)
  await withBody(call, async (body) => {
    let status = 204
    let headers: Record<string, string> = {}
    let lines: Buffer | undefined
    const nowMs = Date.now()
    await streams.compete(author, key, (fold, isTaken) => {
      const view = viewOf(fold, nowMs)
      if (isTaken || !isNew(fold, view, head, body.length === 0)) {
        // The status tells a producer whether its data are new.
        status = isTaken && head.producer !== undefined && body.length > 0 ? 200 : 204
        headers = { ...standOf(view), ...producerHeaders(fold, head.producer) }
        return undefined
      }
      const { producer, streamSeq } = head
      lines ??= contentOf(call, view.isJson, body, fold)
      const payload = lines
      if (payload.length === 0 && body.length > 0) throw new RequestRefusal('the list is empty', 400)
      assertFits(call, payload.length, fold, producer)
      const assertChange = (bytes: Uint8Array) => {
        assertFits(call, bytes.length, fold, producer)
        if (view.isJson && !areLines(Buffer.from(bytes)))
          throw refusalOf('E_HOOK_FAILED', { detail: 'JSON values of a stream are lines' })
      }
      return next(fold, {
        ...{ kind: head.isClosed ? 'close' : 'append', payload, assertChange },
        mark: { producer, streamSeq },
      })
    })
    response.writeHead(status, { ...STREAM_HEADERS, ...headers, 'cache-control': 'no-store' }).end()
  })
}

/** Answers DELETE: the stream has no content any more. */
export async function deleteStream({ streams, author, key, response }: StreamCall): Promise<void> {
  await streams.compete(author, key, (fold, isTaken) => {
    if (isTaken) return undefined
    const phase = phaseOf(fold, Date.now())
    if (phase === 'none' || (phase !== 'present' && !fold.isCut)) throw notFound()
    if (fold.shared === undefined && fold.isActive) throw refuseOwned()
    return next(fold, { kind: 'delete', payload: NOTHING })
  })
  response.writeHead(204, STREAM_HEADERS).end()
}

async function withBody(call: StreamCall, use: (body: Buffer) => Promise<void>): Promise<void> {
  const { request, response, options, bodies, sender } = call
  assertUnencoded(request)
  await bodies.read(request, response, sender, options.maxPayloadBytes, use)
}

/** What is added: of JSON, a line for each value. @param fold The stream, if there is one. */
function contentOf(call: StreamCall, isJson: boolean, body: Buffer, fold?: StreamFold): Buffer {
  const check = (byteCount: number, partCount: number) => {
    assertFits(call, byteCount, fold)
    call.caller.charge?.(partCount / PARTS_PER_UNIT)
  }
  if (isJson && body.length > 0) return linesOf(body, check)
  check(body.length, 0)
  return body
}

function next({ stream = '', sequence }: StreamFold, { mark, ...write }: Next): SharedWrite {
  const isBinary = write.payload.length > 0
  return { stream, sequence: sequence + 1, isBinary, ...write, mark: { atMs: Date.now(), ...mark } }
}

function assertSame(fold: StreamFold, found: StreamView, config: StreamConfig, isClosed: boolean): void {
  if (fold.shared !== undefined && found.isClosed === isClosed && isSameConfig(found.config, config)) return
  throw new RequestRefusal('another stream is at this key', 409, 'E_STREAM_BUSY')
}

/** A body that would be too much for a stream is one that is too large: nobody should send it again. */
function assertFits(
  { streams, options }: StreamCall,
  addedBytes: number,
  fold?: StreamFold,
  producer?: Producer,
): void {
  const { byteCount = 0, appendCount = 0, shared } = fold ?? {}
  const { maxBytes } = streams
  const { maxStreamAppends } = options
  if (byteCount + addedBytes > maxBytes) throw full(`${maxBytes} bytes (maxStreamBytes)`)
  if (addedBytes > 0 && appendCount >= maxStreamAppends) throw full(`${maxStreamAppends} appends (maxStreamAppends)`)
  if (producer === undefined || shared === undefined || shared.producers[producer.id] !== undefined) return
  if (shared.producerCount >= MAX_PRODUCERS) throw full(`${MAX_PRODUCERS} producers`)
}

function full(detail: string): RequestRefusal {
  return new RequestRefusal(detail, 413, 'E_STREAM_LIMIT')
}

/**
 * Decides about an append by the present state of the stream.
 * @returns Whether it must be written; otherwise the stream has it.
 * @throws {RequestRefusal} 400, 403, 405, 409.
 */
function isNew(fold: StreamFold, view: StreamView, head: AppendHead, isEmpty: boolean): boolean {
  if (fold.shared === undefined && fold.isActive) throw refuseOwned()
  const { contentType, isClosed, producer, streamSeq } = head
  if (view.isClosed) return isNewAfterEnd(fold, view, head, isEmpty)
  if (isEmpty && !isClosed) throw new RequestRefusal('an append has a body', 400)
  if (!isEmpty) {
    if (contentType === undefined) throw new RequestRefusal('the header Content-Type is missing', 400)
    if (essenceOf(contentType) !== essenceOf(view.config.contentType))
      throw new RequestRefusal(`the stream is ${view.config.contentType}`, 409)
  }
  if (producer !== undefined && !isNext(fold, producer)) return false
  const last = fold.shared?.streamSeq
  if (streamSeq !== undefined && last !== undefined && streamSeq <= last)
    throw new RequestRefusal(`Stream-Seq is not greater than ${last}`, 409, 'E_STREAM_SEQUENCE')
  return true
}

/** A stream that a client of WebMQ writes. */
function refuseOwned(): RequestRefusal {
  const detail = 'this stream has one writer, which has not ended it'
  return new RequestRefusal(detail, 405, 'E_UNSUPPORTED', { allow: 'GET, HEAD' })
}

/** How far the producer has come. */
function producerHeaders({ shared }: StreamFold, producer: Producer | undefined): Record<string, string> {
  const state = producer === undefined ? undefined : shared?.producers[producer.id]
  return state === undefined ? {} : { 'producer-epoch': `${state[0]}`, 'producer-seq': `${state[1]}` }
}

/** A client may close it again. A client that repeats the last append gets the answer that the stream has it. */
function isNewAfterEnd(
  fold: StreamFold,
  view: StreamView,
  { isClosed, producer }: AppendHead,
  isEmpty: boolean,
): boolean {
  if (producer === undefined) {
    if (isEmpty && isClosed) return false
  } else {
    const by = fold.shared?.closedBy
    if (by?.id === producer.id && by.epoch === producer.epoch && by.sequence === producer.sequence) return false
    assertEpoch(fold, producer)
  }
  throw new RequestRefusal('nothing is added to it', 409, 'E_STREAM_ENDED', standOf(view))
}

function isNext(fold: StreamFold, producer: Producer): boolean {
  assertEpoch(fold, producer)
  const { id, epoch, sequence } = producer
  const [known, last] = fold.shared?.producers[id] ?? [epoch, -1]
  if (epoch > known) {
    if (sequence === 0) return true
    throw new RequestRefusal('the first Producer-Seq of an epoch is 0', 400)
  }
  if (sequence <= last + 1) return sequence > last
  throw new RequestRefusal('appends of this producer are missing before', 409, 'E_STREAM_SEQUENCE', {
    'producer-expected-seq': `${last + 1}`,
    'producer-received-seq': `${sequence}`,
  })
}

/** Another run of the producer has taken over. */
function assertEpoch(fold: StreamFold, { id, epoch }: Producer): void {
  const [known] = fold.shared?.producers[id] ?? [0]
  if (epoch >= known) return
  const headers = { 'producer-epoch': `${known}` }
  throw new RequestRefusal(`the epoch of this producer is ${known}`, 403, 'E_STREAM_SEQUENCE', headers)
}
