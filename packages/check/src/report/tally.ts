import { PROMISES, type Subject, subjectsOf } from '../judging/promises.js'
import type { Rules } from '../judging/rules.js'
import type { RuleName } from '../judging/violation.js'
import { nameOf } from '../playing/faults.js'
import type { Played } from '../playing/play.js'
import type { Failure, Outcome, PromiseRow, ScheduleRow, Shown } from './outcome.js'
import { countsOf } from './report.js'
import { timelineOf } from './run-timeline.js'

/** A page with more of them is slow, and shows nothing new. */
const MAX_FAILURES = 10
const MAX_SHOWN_PER_FAILURE = 6
const MAX_TEXT_CHARS = 600

/** What a play shows beside the rules of the judge. */
const OF_PLAYS: Readonly<Record<string, string>> = {
  settle: 'After the last fault every client is live again, and gets what is published.',
}

/** Adds up what schedules of an installation have done and found. */
export class Tally {
  readonly #subjects = new Map<Subject, number>()
  readonly #violations = new Map<string, number>()
  readonly #gaps = new Map<string, number>()
  readonly #schedules: ScheduleRow[] = []
  readonly #failures: Failure[] = []
  readonly #log: Rules['log']
  #duplicates = 0
  #reconnects = 0

  /** @param log That of the installation: some promises need one. */
  constructor(log: Rules['log']) {
    this.#log = log
  }

  add({ schedule, record, violations, owedCount = 0 }: Played, tookMs: number): void {
    const { publishes, deliveries, gaps } = countsOf(record)
    for (const reason of gaps) raise(this.#gaps, reason)
    for (const { rule } of violations) raise(this.#violations, rule)
    const { seed, theme } = schedule
    this.#schedules.push({
      ...{ seed, theme, publishes, deliveries, tookMs },
      gaps: gaps.length,
      violations: violations.length,
    })
    if (record === undefined) return
    for (const [subject, count] of Object.entries(subjectsOf(record, owedCount)))
      raise(this.#subjects, subject as Subject, count)
    this.#duplicates += record.publishers
      .flatMap(({ messages }) => messages.flatMap(({ attempts }) => attempts))
      .filter(({ isDuplicate }) => isDuplicate).length
    this.#reconnects += record.connections.length - new Set(record.connections.map(({ owner }) => owner)).size
  }

  /** @param played What its smallest schedule, or the first that failed, has come to. */
  fail(played: Played, isShrunk: boolean): void {
    if (this.#failures.length < MAX_FAILURES) this.#failures.push(failureOf(played, isShrunk))
  }

  get isFull(): boolean {
    return this.#failures.length >= MAX_FAILURES
  }

  outcome(rest: Pick<Outcome, 'target' | 'command' | 'version' | 'beganAt' | 'tookMs' | 'facts'>): Outcome {
    const subject = (name: Subject) => this.#subjects.get(name) ?? 0
    return {
      ...rest,
      verdict: this.#violations.size === 0 ? 'held' : 'violated',
      counts: {
        schedules: this.#schedules.length,
        publishes: subject('publishes'),
        deliveries: subject('deliveries'),
        gaps: subject('gaps'),
        duplicates: this.#duplicates,
        reconnects: this.#reconnects,
      },
      gaps: Object.fromEntries(this.#gaps),
      promises: this.#promises(),
      schedules: this.#schedules,
      failures: this.#failures,
    }
  }

  #promises(): PromiseRow[] {
    const has = { log: this.#log !== 'none', 'shared log': this.#log === 'shared' }
    const rows = (Object.keys(PROMISES) as RuleName[]).map((rule) => {
      const { of, needs, ...note } = PROMISES[rule]
      const isJudged = needs === undefined || has[needs]
      const checks = isJudged ? (this.#subjects.get(of) ?? 0) : 0
      return { rule, ...note, of, checks, violations: this.#violations.get(rule) ?? 0 }
    })
    const ofPlays = Object.entries(OF_PLAYS).map(([rule, promise]) => ({
      ...{ rule, promise, unless: 'Always judged.', of: 'schedules', checks: this.#schedules.length },
      violations: this.#violations.get(rule) ?? 0,
    }))
    return [...rows, ...ofPlays]
  }
}

function failureOf({ schedule, record, violations }: Played, isShrunk: boolean): Failure {
  const byRule = new Map<string, Played['violations'][number]>()
  for (const violation of violations) if (!byRule.has(violation.rule)) byRule.set(violation.rule, violation)
  const shown = [...byRule.values()].slice(0, MAX_SHOWN_PER_FAILURE).map((violation): Shown => {
    const { rule, text, owner, atMs } = violation
    return {
      ...{ rule, owner, atMs, text: text.slice(0, MAX_TEXT_CHARS) },
      promise: PROMISES[rule as RuleName]?.promise ?? OF_PLAYS[rule] ?? '',
      count: violations.filter((each) => each.rule === rule).length,
      ...(record === undefined ? {} : { timeline: timelineOf(record, violation) }),
    }
  })
  const { seed, theme, steps } = schedule
  return {
    seed,
    theme,
    isShrunk,
    schedule,
    violations: shown,
    steps: steps.map(
      (step) => `${seconds(step.atMs)} ${nameOf(step)}${step.forMs > 0 ? `, for ${seconds(step.forMs)}` : ''}`,
    ),
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

function raise<K>(counts: Map<K, number>, name: K, by = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}
