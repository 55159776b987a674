import type { Judgement } from '../results/judgement.js'

/** The facts behind a verdict; a scenario leaves out those that it does not know. */
export interface Evidence {
  /** Messages that should have arrived and did not. */
  readonly lostCount?: number
  readonly duplicateCount?: number
  readonly reorderedCount?: number
  /** Failed connections, pings or frames, as a sentence; `null` when there are none. */
  readonly failure?: string | null
  /** Busiest generator thread's share of a core, 0 to 1. */
  readonly generatorUtilization?: number | null
  /** Why the generator did not keep its schedule; `null` when it did. */
  readonly generatorLate?: string | null
  /** Why the server did not keep up with the offered load; `null` when it did. */
  readonly serverLate?: string | null
}

/** Above this share of its core the generator has no slack: the figures may be its own. */
const SATURATED_UTILIZATION = 0.9

/** Judges one measurement: losses count more than who was the limit. */
export function judge(evidence: Evidence): Judgement {
  const { lostCount = 0, duplicateCount = 0, reorderedCount = 0, generatorUtilization } = evidence
  const irregular = [
    [lostCount, 'lost'],
    [duplicateCount, 'doubled'],
    [reorderedCount, 'out of order'],
  ] as const
  const losses = irregular
    .filter(([count]) => count > 0)
    .map(([count, what]) => `${count.toLocaleString('en')} ${what}`)
  if (evidence.failure) losses.push(evidence.failure)
  if (losses.length > 0) return { verdict: 'lost messages', verdictReason: losses.join(', ') }
  if (generatorUtilization && generatorUtilization > SATURATED_UTILIZATION) {
    const percent = Math.round(generatorUtilization * 100)
    return { verdict: 'generator saturated', verdictReason: `the generator used ${percent}% of its core` }
  }
  if (evidence.generatorLate) return { verdict: 'generator saturated', verdictReason: evidence.generatorLate }
  if (evidence.serverLate) return { verdict: 'server saturated', verdictReason: evidence.serverLate }
  return { verdict: 'ok', verdictReason: null }
}
