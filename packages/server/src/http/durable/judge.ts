import type { ServerResponse } from 'node:http'
import type { StreamFold } from '../../streams/fold.js'
import type { Producer } from '../../streams/shared-state.js'
import { RequestRefusal } from '../api/read-call.js'
import { standOf } from './call.js'
import type { AppendHead } from './heads.js'
import { essenceOf, type StreamView } from './view.js'

const BAD_REQUEST = 400
const FORBIDDEN = 403
const METHOD_NOT_ALLOWED = 405
const CONFLICT = 409

/**
 * Decides about an append to what the stream is now.
 * @returns Whether it is to be written; otherwise the stream has it.
 * @throws {RequestRefusal} 400, 403, 405, 409; headers that tell more are set before.
 */
export function isNew(
  response: ServerResponse,
  fold: StreamFold,
  view: StreamView,
  head: AppendHead,
  isEmpty: boolean,
): boolean {
  if (fold.shared === undefined && fold.isActive) throw refuseOwned(response)
  const { contentType, isClosed, producer, streamSeq } = head
  if (view.isClosed) return isNewAfterEnd(response, fold, view, head, isEmpty)
  if (isEmpty && !isClosed) throw new RequestRefusal('an append has a body', BAD_REQUEST)
  if (!isEmpty) {
    if (contentType === undefined) throw new RequestRefusal('the header Content-Type is missing', BAD_REQUEST)
    if (essenceOf(contentType) !== essenceOf(view.config.contentType))
      throw new RequestRefusal(`the stream is ${view.config.contentType}`, CONFLICT)
  }
  if (producer !== undefined && !isNext(response, fold, producer)) return false
  const last = fold.shared?.streamSeq
  if (streamSeq !== undefined && last !== undefined && streamSeq <= last)
    throw new RequestRefusal(`Stream-Seq is not greater than ${last}`, CONFLICT, 'E_STREAM_SEQUENCE')
  return true
}

/** A stream that a client of WebMQ writes. */
export function refuseOwned(response: ServerResponse): RequestRefusal {
  response.setHeader('allow', 'GET, HEAD')
  return new RequestRefusal('this stream has one writer, which has not ended it', METHOD_NOT_ALLOWED, 'E_UNSUPPORTED')
}

/** How far the producer has come. */
export function producerHeaders({ shared }: StreamFold, producer: Producer | undefined): Record<string, string> {
  const state = producer === undefined ? undefined : shared?.producers[producer.id]
  return state === undefined ? {} : { 'producer-epoch': `${state[0]}`, 'producer-seq': `${state[1]}` }
}

/** Who closes it again may; who repeats its last append is told that it is there. */
function isNewAfterEnd(
  response: ServerResponse,
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
    assertEpoch(response, fold, producer)
  }
  for (const [name, value] of Object.entries(standOf(view))) response.setHeader(name, value)
  throw new RequestRefusal('nothing is added to it', CONFLICT, 'E_STREAM_ENDED')
}

function isNext(response: ServerResponse, fold: StreamFold, producer: Producer): boolean {
  assertEpoch(response, fold, producer)
  const { id, epoch, sequence } = producer
  const [known, last] = fold.shared?.producers[id] ?? [epoch, -1]
  if (epoch > known) {
    if (sequence === 0) return true
    throw new RequestRefusal('the first Producer-Seq of an epoch is 0', BAD_REQUEST)
  }
  if (sequence <= last + 1) return sequence > last
  response.setHeader('producer-expected-seq', `${last + 1}`).setHeader('producer-received-seq', `${sequence}`)
  throw new RequestRefusal('appends of this producer are missing before', CONFLICT, 'E_STREAM_SEQUENCE')
}

/** Another run of the producer has taken over. */
function assertEpoch(response: ServerResponse, fold: StreamFold, { id, epoch }: Producer): void {
  const [known] = fold.shared?.producers[id] ?? [0]
  if (epoch >= known) return
  response.setHeader('producer-epoch', `${known}`)
  throw new RequestRefusal(`the epoch of this producer is ${known}`, FORBIDDEN, 'E_STREAM_SEQUENCE')
}
