import { parseStreamPlace, validateKey, WebMQError } from 'webmq-client/protocol'
import { defined } from '../../../../kernel/base/defined.js'
import { JsonText } from '../../../../kernel/base/json-text.js'
import { andThen, type MaybePromise } from '../../../../kernel/base/maybe-promise.js'
import { isJson } from '../../../../kernel/base/parse-json.js'
import type { ValueOf } from '../../../../kernel/base/shape.js'
import { assertMayListen } from '../../../../kernel/identity/access.js'
import type { InboundMessage, Position, ReadRange } from '../../../../kernel/ports/broker.js'
import { formatPosition, parsePosition } from '../../../../kernel/ports/position.js'
import { assertKeyWords } from '../../../../kernel/ports/word-limits.js'
import type { LoggedMessages } from '../../api-node.js'
import type { AnswerOf } from '../route.js'
import { DEFAULT_HISTORY_MESSAGES, type ROUTES } from '../routes.js'
import type { LOGGED_MESSAGE } from '../shapes.js'
import type { Call, Handler, HandlerContext } from './handler.js'

/** Payloads of one answer: the log may hold far more. */
const MAX_ANSWER_BYTES = 4 * 1024 ** 2

export const history: Handler<'history'> = (context, call) => {
  const { since, before, rewindMs, last, limit = DEFAULT_HISTORY_MESSAGES, reverse = false } = call.query
  if (before !== undefined && (since !== undefined || rewindMs !== undefined))
    throw new WebMQError('E_MESSAGE_INVALID', { detail: 'before excludes since and rewindMs' })
  const key = checkedKey(context, call)
  const isNewest = reverse || last !== undefined || (since === undefined && rewindMs === undefined)
  const range = {
    ...defined({ since: positionIn(since), before: positionIn(before), rewindMs }),
    ...(isNewest ? { last: Math.min(last ?? limit, limit) } : { limit }),
  }
  const isCounted = last !== undefined || call.query.limit !== undefined
  return andThen(context.hooks?.listen(call.caller, 'history', key, true), () =>
    readPage(context, call, range, { isNewest, reverse, isCounted }),
  )
}

function positionIn(text: string | undefined): Position | undefined {
  return text === undefined ? undefined : parsePosition(text)
}

interface PageOrder {
  readonly isNewest: boolean
  readonly reverse: boolean
  /** The caller asks for a number. */
  readonly isCounted: boolean
}

function readPage(
  { node }: HandlerContext,
  { caller, isGone, query: { key } }: Call<'history'>,
  range: ReadRange,
  { isNewest, reverse, isCounted }: PageOrder,
): MaybePromise<AnswerOf<(typeof ROUTES)['history']>> {
  return andThen(node.read(range, key, node.authorOf(caller, isGone)), (read) => {
    const fit = isNewest ? newestThatFit(read) : oldestThatFit(read)
    const messages = fit.messages.map(shownMessage)
    const { position, hasMore, isTruncated } = fit
    const page = { messages: reverse ? messages.reverse() : messages, position, hasMore, isTruncated }
    const gap = read.gap ?? (read.isCut === true && isCounted ? 'history-expired' : undefined)
    return gap === undefined ? page : { ...page, gap }
  })
}

export function checkedKey(
  { options }: Pick<HandlerContext, 'options'>,
  { caller, query: { key } }: Pick<Call<'history' | 'presence' | 'readStream'>, 'caller' | 'query'>,
): string {
  validateKey(key)
  assertKeyWords(key, options)
  assertMayListen(caller, key)
  return key
}

interface Page {
  readonly messages: readonly InboundMessage[]
  readonly position: string
  readonly hasMore: boolean
  readonly isTruncated: boolean
}

/** The first ones; the caller reads on behind the last. One message always fits. */
function oldestThatFit({ messages, position, isPartial }: LoggedMessages): Page {
  const count = countThatFits(messages)
  const end = messages[count - 1]?.position
  if (count === messages.length || end === undefined) {
    return { messages, position, hasMore: isPartial, isTruncated: false }
  }
  return { messages: messages.slice(0, count), position: formatPosition(end), hasMore: true, isTruncated: false }
}

function newestThatFit({ messages, position, isPartial }: LoggedMessages): Page {
  const count = countThatFits(messages.toReversed())
  const isTruncated = count < messages.length
  return { messages: messages.slice(messages.length - count), position, hasMore: isPartial, isTruncated }
}

function countThatFits(messages: readonly InboundMessage[]): number {
  let bytes = 0
  for (const [index, { payload }] of messages.entries()) {
    bytes += payload.length
    if (bytes > MAX_ANSWER_BYTES) return Math.max(1, index)
  }
  return messages.length
}

/** Whoever published a text is not bound to JSON, so it is tried. JSON stays as it is: numbers keep their digits, and depth costs nothing. */
function shownMessage({
  key,
  payload,
  isBinary,
  position,
  attributes,
}: InboundMessage): ValueOf<typeof LOGGED_MESSAGE> {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const { userId, timeMs, id, stream: placeText } = attributes ?? {}
  const place = placeText === undefined ? undefined : parseStreamPlace(placeText)
  const stream = place && { id: place.stream, sequence: place.sequence, kind: place.kind }
  const head = {
    key,
    ...defined({ position: position && formatPosition(position), userId, timeMs, id, stream }),
  }
  if (isBinary) return { ...head, base64: bytes.toString('base64') }
  const text = bytes.toString()
  // Some messages of streams are empty.
  if (text === '' && stream !== undefined) return head
  return isJson(text) ? { ...head, payload: new JsonText(text) } : { ...head, text }
}
