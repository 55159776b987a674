import { createLatencyHistogram, recordUs, summarizeLatency } from '../../measure/latency-histogram.js'
import type { LatencyMs } from '../../results/result.js'
import type { PublishLog, PublishRecord } from './messages.js'

/** A span of the machine's clock, in microseconds. */
export interface Span {
  readonly startUs: number
  readonly endUs: number
}

export interface SpanFigures {
  readonly offeredPerSecond: number
  readonly ackedPerSecond: number
  /** What a queue would have acknowledged, which had all that waited at the beginning: no more than its capacity. */
  readonly possiblePerSecond: number
  /** `E_RATE_LIMIT` answers. */
  readonly refusedCount: number
  /** How often one message was refused. */
  readonly mostRefusals: number
  readonly failedCount: number
  /** `12 E_TIMEOUT`, by code. */
  readonly failures: readonly string[]
  /** From when a message was to be published until it was acknowledged, of those acknowledged in this span. */
  readonly latencyMs: LatencyMs
}

/** Below this a message does not wait. */
const NORMAL_MS = 300
/** A recovered p99 is at most this many times as high as before. */
const NORMAL_FACTOR = 2
const STEP_US = 100_000
const WINDOW_US = 1_000_000
/** Share of a window's messages that may be slower: p99. */
const SLOW_SHARE = 0.01
/** Slow messages after that have other causes, such as a machine that others use. */
const LASTING_US = 3_000_000

export function spanFigures(
  { messages, refusals }: PublishLog,
  { startUs, endUs }: Span,
  capacity = Number.POSITIVE_INFINITY,
): SpanFigures {
  const isWithin = (atUs: number | null) => atUs !== null && atUs >= startUs && atUs < endUs
  const answered = messages.filter(({ answeredUs }) => isWithin(answeredUs))
  const failures = new Map<string, number>()
  for (const { failure } of answered) if (failure !== null) failures.set(failure, (failures.get(failure) ?? 0) + 1)
  const acked = answered.filter(({ failure }) => failure === null)
  const latency = createLatencyHistogram()
  for (const { createdUs, answeredUs } of acked) recordUs(latency, (answeredUs ?? 0) - createdUs)
  const refused = refusals.filter(({ atUs }) => isWithin(atUs))
  const seconds = (endUs - startUs) / 1_000_000
  const offeredCount = messages.filter(({ createdUs }) => isWithin(createdUs)).length
  const waitingCount = messages.filter(
    ({ createdUs, answeredUs }) => createdUs < startUs && (answeredUs ?? endUs) >= startUs,
  ).length
  return {
    offeredPerSecond: offeredCount / seconds,
    ackedPerSecond: acked.length / seconds,
    possiblePerSecond: Math.min(capacity, (offeredCount + waitingCount) / seconds),
    refusedCount: refused.length,
    mostRefusals: refused.reduce((most, { count }) => Math.max(most, count), 0),
    failedCount: answered.length - acked.length,
    failures: [...failures].map(([code, count]) => `${count.toLocaleString('en')} ${code}`),
    latencyMs: summarizeLatency(latency),
  }
}

/** The time in which a queue that loses nothing and never rests is empty again. Rates per second. */
export function idealMs(backlogCount: number, capacity: number, load: number): number {
  return (backlogCount / (capacity - load)) * 1_000
}

/** The latency below which things are as they were. @param beforeMs The p99 before the fault. */
export function normalLimitMs(beforeMs: number | null): number {
  return Math.max(NORMAL_MS, NORMAL_FACTOR * (beforeMs ?? 0))
}

/**
 * Time from the end of a fault until messages that are published are served as before, for three seconds: of each second
 * 99 % are acknowledged within the limit, and by then all that were published earlier are answered. `null`: not within the
 * span.
 * @param messages In the order of their creation.
 * @param span From the end of the fault until the run looks no more.
 */
export function normalAfterMs(messages: readonly PublishRecord[], span: Span, limitMs: number): number | null {
  const limitUs = limitMs * 1_000
  const isSlow = ({ createdUs, answeredUs, failure }: PublishRecord) =>
    failure !== null || (answeredUs ?? Number.POSITIVE_INFINITY) - createdUs > limitUs
  // Nobody knows yet what becomes of the last ones.
  const lastUs = span.endUs - limitUs
  const known = messages.filter(({ createdUs }) => createdUs < lastUs)
  let normalUs = span.startUs
  for (let fromUs = span.startUs; fromUs < Math.min(lastUs, normalUs + LASTING_US); fromUs += STEP_US) {
    const own = known.filter(({ createdUs }) => createdUs >= fromUs && createdUs < fromUs + WINDOW_US)
    if (own.filter(isSlow).length > own.length * SLOW_SHARE) normalUs = fromUs + STEP_US
  }
  for (const message of known) {
    if (message.createdUs >= normalUs) break
    normalUs = Math.max(normalUs, (message.answeredUs ?? Number.POSITIVE_INFINITY) - limitUs)
  }
  return normalUs < lastUs ? (normalUs - span.startUs) / 1_000 : null
}
