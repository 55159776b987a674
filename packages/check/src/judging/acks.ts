import type { Knowledge, Known } from './known.js'
import { placeOf } from './place.js'
import type { AttemptRecord } from './record.js'
import type { Report } from './violation.js'

/** What publishers were told about their messages, and the order in which the logs have them. */
export function examineAcks(knowledge: Knowledge, report: Report): void {
  for (const message of knowledge.messages.values()) {
    examinePositions(message, knowledge, report)
    examineDuplicates(message, knowledge, report)
    for (const { outcome, isRetryable, code, settledAtMs = 0 } of message.attempts) {
      if (outcome === 'refused' && !isRetryable)
        report('refused', settledAtMs, message.publisher, `${message.id}: ${code}`)
    }
  }
  examineEchoes(knowledge, report)
  for (const epoch of knowledge.logs.keys()) examineOrder(epoch, knowledge, report)
}

/** [P-7.5]. A message that was published again on another connection may come to either. */
function examineEchoes({ record, messages }: Knowledge, report: Report): void {
  for (const { name, echoes } of record.publishers) {
    for (const { connection, atMs, id } of echoes) {
      const message = messages.get(id)
      if (message?.isNoecho && message.attempts.every((attempt) => attempt.connection === connection))
        report('echoed', atMs, name, `${id}, on connection ${connection}`)
    }
  }
}

function examinePositions({ id, key, publisher, attempts }: Known, knowledge: Knowledge, report: Report): void {
  const isLogged = knowledge.isLogged(key)
  for (const { outcome, position, isDuplicate, settledAtMs = 0 } of attempts) {
    // Of a duplicate, the position of the first message may no longer be known [P-7.4].
    if (outcome !== 'ok' || isLogged === (position !== undefined) || (isLogged && isDuplicate)) continue
    report('position-missing', settledAtMs, publisher, `ok of ${id} to ${key}: ${position ?? 'no position'}`)
  }
}

function examineDuplicates(message: Known, knowledge: Knowledge, report: Report): void {
  const { id, attempts, publisher } = message
  for (const attempt of attempts) {
    if (!attempt.isDuplicate) continue
    // Whatever was sent before this answer may have been stored, answered or not; but not what is a duplicate itself.
    const isPossible = attempts.some((other) => isFirstOf(other, attempt))
    if (!isPossible) report('duplicate-untrue', attempt.settledAtMs ?? 0, publisher, `${id} was published only once`)
  }
  if (!knowledge.isLogged(message.key) && !knowledge.rules.dedupe.coversUnlogged) return
  if (!knowledge.isWithinWindow(message) || mayHaveForgotten(message, knowledge)) return
  const firsts = attempts.filter(({ outcome, isDuplicate }) => outcome === 'ok' && !isDuplicate)
  for (const [index, second] of firsts.entries()) {
    const first = firsts[index - 1]
    if (first === undefined) continue
    const isAtOnce = second.sentAtMs <= (first.settledAtMs ?? Number.POSITIVE_INFINITY)
    if (isAtOnce && !knowledge.rules.dedupe.isExact) continue
    report('duplicate-untold', second.settledAtMs ?? 0, publisher, `${id} at ${first.position} and ${second.position}`)
  }
}

function isFirstOf(other: AttemptRecord, attempt: AttemptRecord): boolean {
  const wasSent = other.sentAtMs <= (attempt.settledAtMs ?? Number.POSITIVE_INFINITY)
  return other !== attempt && wasSent && !(other.outcome === 'ok' && other.isDuplicate)
}

/** A log that begins anew knows no ids of the one before, and a node of a mesh none that it was cut off from. */
function mayHaveForgotten({ attempts, firstSentAtMs }: Known, { rules, record }: Knowledge): boolean {
  const lastMs = attempts.at(-1)?.settledAtMs ?? Number.POSITIVE_INFINITY
  const forgets = (touches: readonly string[]) => {
    if (touches.includes('broker-data') || (!rules.isDurable && touches.includes('node'))) return true
    return rules.log === 'per-node' && touches.includes('peer-links')
  }
  return record.faults.some(
    ({ touches, fromMs, untilMs }) => forgets(touches) && fromMs <= lastMs && untilMs + rules.settleMs >= firstSentAtMs,
  )
}

/** In each log, messages of one publisher and key stand in the order in which they were published. */
function examineOrder(epoch: string, knowledge: Knowledge, report: Report): void {
  const last = new Map<string, Known>()
  for (const { id, offset, knownAtMs } of knowledge.logs.get(epoch) ?? []) {
    const message = knowledge.messages.get(id)
    // A refused publish that is tried again has the place of the retry: nobody knows which.
    if (message === undefined || message.wasRefused || isOfFormerLog(message, epoch, knowledge)) continue
    const stream = `${message.publisher} ${message.key}`
    const before = last.get(stream)
    if (before !== undefined && before.sequence > message.sequence) {
      const where = `${epoch}:${offset.toString(36)}`
      report('out-of-order', knownAtMs, message.publisher, `${id} stands at ${where}, after ${before.id}`)
    } else last.set(stream, message)
  }
}

/**
 * Whether another log had the message first: the second copy has the place of the second publish. Logs of single nodes
 * differ anyway. There it may be any message that was published twice: a mesh has no order between two nodes.
 */
function isOfFormerLog({ attempts }: Known, epoch: string, { rules }: Knowledge): boolean {
  if (rules.log !== 'shared') return attempts.length > 1
  const first = attempts.find(({ position }) => position !== undefined)
  return first !== undefined && placeOf(first.position)?.epoch !== epoch
}
