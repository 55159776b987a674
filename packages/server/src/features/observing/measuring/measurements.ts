import { ERRORS, type ErrorCode, type ErrorSpec } from 'webmq-client/protocol'
import { Counts } from '../../../kernel/base/counts.js'
import { HOOK_NAMES, type HookName } from '../../../kernel/identity/hook-port.js'
import { Histogram, type HistogramStats } from './histogram.js'
import { PublishTimings, type PublishTimingsContext } from './publish-timings.js'

/** How a listen with `since` ended: all messages came; some may be missing; another node has to serve it. */
export const RESUME_OUTCOMES = ['recovered', 'gap', 'sent-on'] as const

export type ResumeOutcome = (typeof RESUME_OUTCOMES)[number]

export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[]

/** Close codes that have a count of their own: those of errors, and the usual ones of RFC 6455 §7.4.1. */
export const CLOSE_CODES: readonly string[] = [
  ...new Set([1000, 1001, 1005, 1006, ...ERROR_CODES.flatMap((code) => (ERRORS[code] as ErrorSpec).closeCode ?? [])]),
]
  .sort((one, other) => one - other)
  .map(String)
  .concat('other')

/** How long things took since the start. `docs/operations.md` says where each begins and ends. */
export interface TimingStats {
  readonly publish: HistogramStats
  readonly broker: HistogramStats
  readonly lag: HistogramStats
  readonly hooks: Readonly<Record<HookName, HistogramStats>>
}

export interface MeasurementStats {
  /** Upgrades that were refused, by error code. */
  readonly refusedUpgradeCounts: Readonly<Record<ErrorCode, number>>
  /** Closed connections, by close code; unusual codes count as `other`. */
  readonly closeCounts: Readonly<Record<string, number>>
  /** Listens with `since`, by outcome. */
  readonly resumeCounts: Readonly<Record<ResumeOutcome, number>>
  readonly timings: TimingStats
}

function byHook<T>(create: (name: HookName) => T): Readonly<Record<HookName, T>> {
  return Object.fromEntries(HOOK_NAMES.map((name) => [name, create(name)])) as Record<HookName, T>
}

/** What a node measures beside the counters of its parts. */
export class Measurements {
  readonly publishes: PublishTimings
  readonly hooks = byHook(() => new Histogram())
  readonly resumes = new Counts(RESUME_OUTCOMES)
  /** Connections that were closed because no token came in time. */
  missingTokenCount = 0
  readonly refusedUpgrades = new Counts(ERROR_CODES)
  readonly #closes = new Counts(CLOSE_CODES)

  constructor(context: PublishTimingsContext) {
    this.publishes = new PublishTimings(context)
  }

  closed(code: number): void {
    const name = String(code)
    this.#closes.add(this.#closes.has(name) ? name : 'other')
  }

  stats(): MeasurementStats {
    const { publishes, hooks, resumes, refusedUpgrades } = this
    publishes.measureNext()
    return {
      refusedUpgradeCounts: refusedUpgrades.stats(),
      closeCounts: this.#closes.stats(),
      resumeCounts: resumes.stats(),
      timings: {
        publish: publishes.publish.stats(),
        broker: publishes.broker.stats(),
        lag: publishes.lag.stats(),
        hooks: byHook((name) => hooks[name].stats()),
      },
    }
  }
}
