import { whyUntrue } from './gaps.js'
import { matches } from './keys.js'
import type { Entry, Knowledge } from './known.js'
import { isAfter, isSameEpoch, type Place, placeOf } from './place.js'
import type { PageRecord, ReadRecord, Received } from './record.js'
import type { Report, RuleName } from './violation.js'

/** Holds a read of the log against what is known of the log. */
export function examineRead(read: ReadRecord, knowledge: Knowledge, report: Report): void {
  const violate = (rule: RuleName, atMs: number, text: string) => {
    report(rule, atMs, read.owner, `${read.verb} ${read.pattern} ${JSON.stringify(read.asked)}: ${text}`)
  }
  for (const page of read.pages) examinePage(page, read, knowledge, violate)
  const last = read.pages.at(-1)
  // Nothing can be said about what a connection has cut off.
  if (last?.settledAtMs === undefined || last.answer === undefined) return
  examineWhole(read, last, knowledge, violate)
}

type Violate = (rule: RuleName, atMs: number, text: string) => void

function examinePage(page: PageRecord, read: ReadRecord, knowledge: Knowledge, violate: Violate): void {
  const { answer, asked, messages, settledAtMs, askedAtMs, code } = page
  const atMs = settledAtMs ?? askedAtMs
  if (code !== undefined) {
    // A node that is behind, or without its broker, says so. Without a log there is nothing to read.
    const isUpset = ['E_NODE_BEHIND', 'E_BROKER_UNAVAILABLE'].includes(code)
    const isLost = code === 'E_POSITION_INVALID' && knowledge.hadFault(atMs, ['broker-data'])
    if (!isUpset && !isLost && !(code === 'E_UNSUPPORTED' && knowledge.rules.log === 'none'))
      violate('refused', atMs, code)
  }
  if (answer === undefined) return
  const since = placeOf(asked.since)
  // `history` says only what may be missing: its answer has no `recovered` [P-6.7].
  if (read.verb === 'history') {
    if (answer.isRecovered) violate('recovered-untrue', atMs, 'recovered in an answer to history')
  } else if (asked.since !== undefined && answer.isRecovered === (answer.gap !== undefined)) {
    violate('neither-recovered-nor-gap', atMs, `since ${asked.since}`)
  }
  if (answer.isRecovered && since !== undefined && since.epoch !== placeOf(answer.position)?.epoch) {
    violate('recovered-untrue', atMs, `${asked.since} became ${answer.position}`)
  }
  const end = placeOf(answer.position)
  if (since !== undefined && end !== undefined && end.epoch !== since.epoch && answer.gap === undefined) {
    violate('epoch-unannounced', atMs, `${asked.since} became ${answer.position}`)
  }
  if (answer.gap !== undefined) {
    const answered = { asked, position: answer.position }
    const told = { reason: answer.gap, pattern: read.pattern, atMs, hasStalled: false, answered }
    const why = whyUntrue(told, knowledge)
    if (why !== undefined) violate('gap-untrue', atMs, `${answer.gap}, but ${why}`)
  }
  if (settledAtMs !== undefined && messages.length !== answer.replayed) {
    violate('replayed-untrue', atMs, `${messages.length} of ${answer.replayed} came`)
  }
  if (answer.isMore && answer.position === undefined) violate('more-untrue', atMs, 'more without a position')
  for (const message of messages)
    examineMessage(message, read, since, knowledge, (rule, text) => violate(rule, atMs, text))
  const count = asked.last ?? asked.limit
  if (count !== undefined && messages.length > count) violate('limit-untrue', atMs, `${messages.length} came`)
}

function examineMessage(
  { id, key, position, payloadBytes }: Received,
  { pattern }: ReadRecord,
  since: Place | undefined,
  knowledge: Knowledge,
  violate: (rule: RuleName, text: string) => void,
): void {
  const known = knowledge.messages.get(id)
  if (known === undefined || known.payloadBytes !== payloadBytes) violate('alien', `${id} with ${payloadBytes} bytes`)
  if (!matches(pattern, key) || (known !== undefined && known.key !== key)) violate('wrong-key', `${id} of ${key}`)
  const place = placeOf(position)
  if (place === undefined) violate('position-missing', `${id} at ${position}`)
  else if (since !== undefined && isSameEpoch(place, since) && !isAfter(place, since)) {
    violate('before-since', `${id} at ${position}`)
  }
}

/** Order, holes, the end, and the number of all pages together. */
function examineWhole(read: ReadRecord, last: PageRecord, knowledge: Knowledge, violate: Violate): void {
  const { asked, pages } = read
  const atMs = last.settledAtMs ?? 0
  const messages = pages.flatMap((page) => page.messages)
  const places = messages.flatMap(({ position }) => placeOf(position) ?? [])
  if (asked.isReverse) places.reverse()
  for (const [index, place] of places.entries()) {
    const before = places[index - 1]
    if (before === undefined || isAfter(place, before)) continue
    if (!isSameEpoch(place, before)) return
    const isTwice = place.offset === before.offset
    violate(
      isTwice ? 'twice' : 'out-of-order',
      atMs,
      `${place.offset.toString(36)} after ${before.offset.toString(36)}`,
    )
    return
  }
  const end = placeOf(last.answer?.position)
  const hasGap = pages.some(({ answer }) => answer?.gap !== undefined)
  if (end === undefined || hasGap) return
  const log = (knowledge.logs.get(end.epoch) ?? []).filter(({ key }) => matches(read.pattern, key))
  examineHoles(places, end, log, read, last, (rule, text) => violate(rule, atMs, text))
  examineEnd(end, log, read, last, knowledge, (rule, text) => violate(rule, atMs, text))
}

function examineHoles(
  places: readonly Place[],
  end: Place,
  log: readonly Entry[],
  { asked }: ReadRecord,
  { answer }: PageRecord,
  violate: (rule: RuleName, text: string) => void,
): void {
  const given = new Set(places.map(({ offset }) => offset))
  const since = placeOf(asked.since)
  // The oldest of them begin after `since`; where only the newest were asked for, or nobody knows where the log begins,
  // with the first that came.
  const isFromSince = since !== undefined && asked.last === undefined && !asked.isReverse
  const from = isFromSince ? since.offset : (places[0]?.offset ?? end.offset)
  // With `more`, and in the other direction, the position may be beyond the last message.
  const until = answer?.isMore || asked.isReverse ? (places.at(-1)?.offset ?? from) : end.offset
  for (const { offset, id } of log) {
    if (offset <= from || offset > until || given.has(offset)) continue
    violate('read-hole', `${id} at ${offset.toString(36)} is missing`)
    return
  }
}

/** What was accepted some time before must be there; of the newest, as many as were asked for. */
function examineEnd(
  end: Place,
  log: readonly Entry[],
  { asked, pages }: ReadRecord,
  { answer }: PageRecord,
  knowledge: Knowledge,
  violate: (rule: RuleName, text: string) => void,
): void {
  const askedAtMs = pages[0]?.askedAtMs ?? 0
  const { deliverWithinMs, keeps, log: kind } = knowledge.rules
  const isDue = ({ knownAtMs }: Entry) => knowledge.quietMs(knownAtMs, askedAtMs) > deliverWithinMs
  const newest = log.findLast(isDue)
  // A limit ends the read early, and says `more`.
  const isToTheEnd = !answer?.isMore && asked.limit === undefined
  if (kind === 'shared' && isToTheEnd && newest !== undefined && newest.offset > end.offset) {
    violate('read-stale', `${newest.id} at ${newest.offset.toString(36)} is not there`)
  }
  if (asked.last === undefined || asked.rewindMs !== undefined || answer?.isMore) return
  const since = placeOf(asked.since)
  const from = since !== undefined && isSameEpoch(since, end) ? since.offset : -1
  const all = knowledge.logs.get(end.epoch) ?? []
  // Messages that the log may have dropped are not owed. Some of a node's log may be known to nobody, but each message
  // takes an offset.
  const held = all.slice(Math.max(0, all.length - keeps.messageCount))
  const oldest = Math.max(held[0]?.offset ?? Number.POSITIVE_INFINITY, end.offset - keeps.messageCount + 1)
  const owed = log.filter(({ offset }) => offset > from && offset >= oldest && offset <= end.offset).length
  const count = pages.reduce((sum, { messages }) => sum + messages.length, 0)
  if (count < Math.min(asked.last, owed)) violate('last-untrue', `${count} came, of at least ${owed}`)
}
