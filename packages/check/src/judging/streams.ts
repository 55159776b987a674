import type { Knowledge, Known } from './known.js'
import type { ListenState } from './listen-state.js'
import type { ListenerRecord } from './record.js'
import type { Report } from './violation.js'

/**
 * Finds what a listen has never been given, by the order of publishers: also where nobody was told a position, because
 * every node has its own log or the key is not logged.
 */
export function examineStreams(
  listen: ListenState,
  record: ListenerRecord,
  knowledge: Knowledge,
  report: Report,
): void {
  for (const stream of streams(listen, knowledge).values()) {
    for (const message of stream) {
      if (!isOwed(message, listen, knowledge)) continue
      knowledge.owedCount++
      if (listen.receipts.has(message.id)) continue
      if (
        hasGap(
          message,
          stream.filter((each) => !knowledge.mayHaveTwoPlaces(each)),
          listen,
          record,
          mayHaveStayedOnItsSide(message, knowledge),
        )
      )
        continue
      if (wentWithTheLog(message, listen, knowledge)) continue
      report('lost', message.ackedAtMs ?? 0, record.name, `${listen.pattern}: ${message.id} never came`)
    }
  }
}

/**
 * Whether the log lost its data after a message was acknowledged, and the listen was told a gap since: it stands before all
 * that the next log brings, also before what the listen had missed of the time before.
 */
function wentWithTheLog({ ackedAtMs = 0 }: Known, { gaps }: ListenState, { record }: Knowledge): boolean {
  return record.faults.some(
    ({ touches, fromMs, untilMs }) =>
      touches.includes('broker-data') &&
      untilMs >= ackedAtMs &&
      gaps.some(({ atMs }) => atMs >= fromMs && atMs >= ackedAtMs),
  )
}

/**
 * Whether a node of a mesh may have accepted a message while it was cut off. Its publisher may have moved to the other side
 * before anybody knew there of the message, so the gap follows when the sides know of each other.
 */
function mayHaveStayedOnItsSide({ ackedAtMs = 0 }: Known, { record, rules }: Knowledge): boolean {
  return (
    rules.log === 'per-node' &&
    record.faults.some(
      ({ touches, fromMs, untilMs }) =>
        touches.includes('peer-links') && fromMs <= ackedAtMs && untilMs + rules.settleMs >= ackedAtMs,
    )
  )
}

/** Messages that a listen matches, by publisher and key. */
function streams(listen: ListenState, { messages }: Knowledge): Map<string, Known[]> {
  const byStream = new Map<string, Known[]>()
  const matching = new Map<string, boolean>()
  for (const message of messages.values()) {
    const { key, publisher } = message
    if (!matching.has(key)) matching.set(key, listen.matches(key))
    if (!matching.get(key)) continue
    const name = `${publisher} ${key}`
    const stream = byStream.get(name)
    if (stream === undefined) byStream.set(name, [message])
    else stream.push(message)
  }
  return byStream
}

/** Whether a message was accepted, after the listen had begun and early enough before the end. */
function isOwed(
  { ackedAtMs, firstSentAtMs }: Known,
  { begunAtMs, isLive }: ListenState,
  knowledge: Knowledge,
): boolean {
  if (ackedAtMs === undefined || firstSentAtMs <= begunAtMs || !isLive) return false
  return knowledge.quietMs(ackedAtMs, knowledge.record.endedAtMs) > knowledge.rules.deliverWithinMs
}

/**
 * Whether a gap stands between the last message before and the first one after, of the same publisher and key.
 * @param mayFollow It may also stand behind the first one after.
 */
function hasGap(
  message: Known,
  stream: readonly Known[],
  listen: ListenState,
  { events }: ListenerRecord,
  mayFollow: boolean,
): boolean {
  let after = events.length
  let before = -1
  // The retry of a refused publish lands late: its neighbours are not those of its number.
  if (!message.wasRefused) {
    for (const { sequence, id } of stream) {
      if (sequence <= message.sequence) continue
      for (const { index, atMs } of listen.receipts.get(id) ?? []) {
        if (atMs > message.firstSentAtMs) after = Math.min(after, index)
      }
    }
    for (const known of stream) {
      if (known.sequence >= message.sequence) break
      for (const { index, atMs } of listen.receipts.get(known.id) ?? []) {
        // A copy that was published, or sent again, after the message says nothing of what came before it.
        const mayBeCopy =
          known.attempts.some(({ sentAtMs }) => sentAtMs > message.firstSentAtMs && sentAtMs <= atMs) ||
          listen.mayBeSecondCopy(known, index, atMs)
        if (index < after && !mayBeCopy) before = Math.max(before, index)
      }
    }
  }
  const gaps = listen.gaps.filter(({ untilMs }) => untilMs >= message.firstSentAtMs)
  return gaps.some(({ index, untilIndex }) => (untilIndex > before && index < after) || (mayFollow && index > after))
}
