import type { Counted, CountOptions } from '../loadgen/events.js'
import { nowUs } from '../measure/clock.js'
import { growthPerSecond, type Moment, stepMsOf } from '../measure/over-time.js'
import type { ResultSeries } from '../results/result.js'
import type { RunProgress } from '../run-progress.js'
import type { Published } from '../targets/messages.js'
import { type Subject, type Usage, usageBetween } from './trial.js'
import { per } from './trial-scenario.js'

/** The result of one window of fan-out. */
export interface FanOutWindow {
  readonly published: Published
  readonly counted: Counted
  readonly usage: Usage
  /** From the first frame that arrived to the last. */
  readonly activeSeconds: number
  /** Busiest generator thread's share of a core while frames arrived, 0 to 1. */
  readonly generatorUtilization: number
  /** Messages that connections should have received and did not, except those of closed connections. */
  readonly lostCount: number
  /** The connections that the server has closed since the trial began, as a sentence; `null`: none. */
  readonly closedReason: string | null
  readonly closedCount: number
  /** CPU seconds over the time of publishing. */
  readonly moments: readonly Moment<'server'>[]
}

/** Polling for progress costs the generator CPU, so it is rare. */
const POLL_MS = 500
/** A window without its last message ends when nothing has come for this long. */
const QUIET_MS = 3_000
const TAIL_TIMEOUT_MS = 60_000

export interface FanOutOptions {
  readonly count: CountOptions
  readonly durationMs: number
  /** The warm-up; absent: there was none. */
  readonly before?: Published | undefined
  readonly progress: RunProgress
  readonly phase: string
}

/** Publishes, counts arrivals until the last message is everywhere, and measures the cost. */
export async function measureFanOut(
  trial: Subject,
  publish: () => Promise<Published>,
  { count, durationMs, before, progress, phase }: FanOutOptions,
): Promise<FanOutWindow> {
  const { loadgen } = trial
  progress.phase(phase)
  const firstSeq = trial.firstSeqAfter(before)
  await loadgen.startCounting({ ...count, ...(firstSeq === undefined ? {} : { firstSeq }) })
  const start = await trial.mark()
  const moments: Moment<'server'>[] = []
  const published = await withRates(trial, progress, durationMs, moments, publish())
  const counted = await loadgen.stopCounting({
    lastSeq: published.lastSeq,
    quietMs: QUIET_MS,
    timeoutMs: TAIL_TIMEOUT_MS,
  })
  const usage = usageBetween(start, await trial.mark())
  const { closed } = await loadgen.stats()
  const activeUs = counted.lastFrameUs - counted.firstFrameUs
  return {
    published,
    counted,
    usage,
    activeSeconds: activeUs / 1_000_000,
    // The window is longer than its traffic; idle time at its ends is not slack.
    generatorUtilization: activeUs > 0 ? Math.min(1, (counted.busiestThreadShare * counted.durationUs) / activeUs) : 0,
    lostCount: counted.gapCount + counted.missingCount,
    closedReason: await trial.whyClosed(),
    closedCount: Object.values(closed).reduce((sum, count) => sum + count, 0),
    moments,
  }
}

/** Shows the rate of deliveries until the work is done, and notes the CPU time of the servers meanwhile. */
async function withRates<T>(
  trial: Subject,
  progress: RunProgress,
  expectedMs: number,
  moments: Moment<'server'>[],
  work: Promise<T>,
): Promise<T> {
  let deliveries = 0
  const startUs = nowUs()
  const look = () => {
    const atMs = (nowUs() - startUs) / 1_000
    if (atMs < moments.length * stepMsOf(expectedMs)) return
    moments.push({ atMs, counts: { server: trial.serverCpuSeconds() } })
  }
  look()
  const timer = setInterval(() => {
    look()
    // The death of a generator fails the measurement elsewhere.
    trial.loadgen.stats().then(
      ({ frames }) => (deliveries = frames),
      () => undefined,
    )
  }, POLL_MS)
  try {
    return await progress.during(work, { expectedMs, counts: () => ({ deliveries }) })
  } finally {
    clearInterval(timer)
  }
}

/** The members of a row that every window of fan-out has. */
export function fanOutFigures(window: FanOutWindow, payloadBytes: number) {
  const { published, counted, usage, activeSeconds, generatorUtilization, lostCount } = window
  const deliveriesPerSecond = per(counted.frames, activeSeconds)
  return {
    ...usage,
    publishedPerSecond: per(published.count, published.durationUs / 1_000_000),
    deliveriesPerSecond,
    // Payload of the applications. wireBytesPerDelivery also counts headers of frames and protocols.
    bytesPerSecond: deliveriesPerSecond === null ? null : deliveriesPerSecond * payloadBytes,
    wireBytesPerDelivery: per(counted.wireBytes, counted.frames),
    gapCount: lostCount,
    duplicateCount: counted.duplicateCount,
    reorderedCount: counted.reorderedCount,
    deliveriesPerServerCpuSecond: per(counted.frames, usage.serverCpuSeconds),
    generatorUtilization,
  }
}

type WindowSeries = Omit<ResultSeries, 'target' | 'subscribers' | 'condition' | 'repeat'>

/** Deliveries per second, and cores that the servers kept busy, over the time of a window. */
export function seriesOf({ counted, moments }: FanOutWindow): WindowSeries[] {
  const { timeline } = counted
  const widthMs = (timeline[1]?.atMs ?? 100) - (timeline[0]?.atMs ?? 0)
  const cores = growthPerSecond(moments, 'server').flatMap((value, index) => {
    const atMs = moments[index]?.atMs
    // Lines of several servers share their places.
    return value === null || atMs === undefined ? [] : [{ atMs: Math.round(atMs / POLL_MS) * POLL_MS, value }]
  })
  const deliveries: WindowSeries = {
    title: 'deliveries',
    unit: '1/s',
    format: 'rate',
    points: timeline.map(({ atMs, frames }) => ({ atMs, value: (frames * 1_000) / widthMs })),
  }
  if (cores.length < 2) return [deliveries]
  return [deliveries, { title: 'busy cores of the server', unit: '', format: 'number', points: cores }]
}
