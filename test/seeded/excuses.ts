import type { Violation } from '../../packages/check/src/judging/judge.js'
import type { RunRecord } from '../../packages/check/src/judging/record.js'
import { FULL, LOSSES, REFUSALS } from './brokers.js'

/** `brokerTimeoutMs` of the nodes: its default. */
const BROKER_TIMEOUT_MS = 5_000
/** By then, what a node had before a loss has come to its listeners. */
const DRAINED_MS = 300

interface Excuses {
  /** Whether the log loses something in this schedule. */
  readonly isLossy: boolean
  /** Where nodes log different keys: what the judge finds by the rules that log less. */
  readonly byOtherRules: readonly Violation[] | undefined
}

/** Whether a violation is none here, since what it tells is not promised. */
export function isExcused(violation: Violation, record: RunRecord, { isLossy, byOtherRules }: Excuses): boolean {
  return (
    isAgainAfterGap(violation, record) ||
    (isLossy && isGone(violation, record)) ||
    (byOtherRules !== undefined && NOT_OF_OTHER_RULES.has(violation.rule)) ||
    (byOtherRules !== undefined && isLateSecondCopy(violation, byOtherRules)) ||
    isSentAgain(violation, record) ||
    isRefusedUnheard(violation, record) ||
    isQueueToldLate(violation, record)
  )
}

/**
 * A node without the rule gives no positions, and who comes back is told a gap while nodes differ: docs/guarantees.md. So a
 * message has a place in the log, by which the judge expects it, and comes by no place; or the gap of a lost link, which is
 * for each pattern then, stands before earlier messages of the log. `missedInSilence` knows what is lost there.
 */
const NOT_OF_OTHER_RULES: ReadonlySet<string> = new Set(['position-missing', 'gap-untrue', 'lost'])

/**
 * A message that came by no position: its key had no rule at a node. A node whose link breaks sends again what was not
 * confirmed, and a listener that was told a gap meanwhile may have had later messages from the broken link: docs/guarantees.md,
 * "A second copy comes late". The judge sees that by rules without this key.
 */
function isLateSecondCopy({ rule, owner, text, atMs }: Violation, byOtherRules: readonly Violation[]): boolean {
  if (rule !== 'out-of-order' || !text.includes(' at -, after number ')) return false
  return !byOtherRules.some((other) => other.owner === owner && other.text === text && other.atMs === atMs)
}

/**
 * A listener that has moved to a node which lagged gets messages again, from the next log, or from the one before behind a
 * gap; and so does one whose log older data has brought back: docs/guarantees.md.
 */
function isAgainAfterGap({ rule, owner, text, atMs }: Violation, { listeners }: RunRecord): boolean {
  if (rule === 'twice' && text.includes(', and in the log ')) return true
  if (rule !== 'twice' && rule !== 'live-falls' && rule !== 'out-of-order') return false
  const [, id] = /^(?:\S+: )?(\S+) at /.exec(text) ?? []
  const before = listeners.find(({ name }) => name === owner)?.events.filter((event) => event.atMs <= atMs) ?? []
  const connection = before.at(-1)?.connection
  const firstAt = before.findIndex((event) => event.what === 'message' && event.id === id)
  return before.some(
    (event, at) =>
      event.what === 'gap' &&
      event.reason === 'epoch-changed' &&
      event.connection === connection &&
      (rule === 'out-of-order' || at > firstAt),
  )
}

/**
 * A message that the log has lost, of which the listener was told a gap behind its `ok`. The judge wants the gap at its place:
 * a node that had lagged gives what it had not had, of what is left, behind the gap.
 */
function isGone({ rule, owner, text, atMs }: Violation, { listeners }: RunRecord): boolean {
  const [, id] = /: (\S+) never came$/.exec(text) ?? []
  if (rule !== 'lost' || id === undefined) return false
  const hasGap = listeners.some(
    ({ name, events }) => name === owner && events.some((event) => event.what === 'gap' && event.atMs >= atMs),
  )
  return (
    hasGap &&
    !listeners.some(({ events }) =>
      events.some((event) => event.what === 'message' && event.id === id && event.atMs > atMs + DRAINED_MS),
    )
  )
}

/**
 * A client that is told to wait, since the broker has not answered in time, sends its message again by itself, and what it has
 * sent behind it.
 */
function isSentAgain({ rule, owner, text, atMs }: Violation, { publishers }: RunRecord): boolean {
  const [, id] = /^(\S+) was published only once$/.exec(text) ?? []
  const { messages = [] } = publishers.find(({ name }) => name === owner) ?? {}
  const own = messages.find((message) => message.id === id)?.attempts.find(({ settledAtMs }) => settledAtMs === atMs)
  if (rule !== 'duplicate-untrue' || own === undefined) return false
  return messages.some(({ attempts }) =>
    attempts.some(
      ({ connection, sentAtMs, settledAtMs = 0 }) =>
        connection === own.connection && sentAtMs <= own.sentAtMs && settledAtMs - sentAtMs > BROKER_TIMEOUT_MS,
    ),
  )
}

/** A broker refused it, dropped it in silence, or lost it, and its client moved before it heard of it: docs/guarantees.md. */
function isRefusedUnheard({ rule, text }: Violation, { faults, publishers }: RunRecord): boolean {
  const [, id] = /^(\S+) stands at /.exec(text) ?? []
  if (rule !== 'out-of-order' || id === undefined) return false
  const [first] = publishers.flatMap(({ messages }) => messages).find((message) => message.id === id)?.attempts ?? []
  if (first?.outcome !== 'unanswered') return false
  const { sentAtMs, settledAtMs = Number.POSITIVE_INFINITY } = first
  return faults.some(
    ({ name, fromMs, untilMs }) => (REFUSALS.has(name) || isLoss(name)) && fromMs <= settledAtMs && untilMs >= sentAtMs,
  )
}

/** RabbitMQ tells late that a queue was full, so that messages behind the dropped ones come first: docs/guarantees.md. */
function isQueueToldLate({ rule, owner, atMs }: Violation, { faults, listeners }: RunRecord): boolean {
  const isFull = faults.some(({ name, fromMs, untilMs }) => name === FULL && fromMs <= atMs && atMs <= untilMs)
  if (rule !== 'lost' || !isFull) return false
  const { events = [] } = listeners.find(({ name }) => name === owner) ?? {}
  return events.some((event) => event.what === 'gap' && event.reason === 'broker-lost' && event.atMs >= atMs)
}

/** Whether a fault loses something of the log. */
export function isLoss(faultName: string): boolean {
  return /, less [1-9]/.test(faultName) || LOSSES.has(faultName)
}
