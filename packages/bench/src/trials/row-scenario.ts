import type { Command, OptionValues } from 'commander'
import { RunError } from '../exit-codes.js'
import type { Progress } from '../progress.js'
import type { ResultColumn, ResultCurve, ResultRow, ResultSeries, ResultTimeline } from '../results/result.js'
import { RunProgress } from '../run-progress.js'
import type { Scenario, ScenarioContext } from '../scenario.js'
import { combineRuns } from './medians.js'
import { checkRowAssertions, parseRowAssertion, ROW_ASSERTION_FORM } from './row-assertions.js'

/** The result of a run as a table. */
export interface Rows {
  readonly rows: readonly ResultRow[]
  readonly runs: readonly ResultRow[]
  readonly series?: readonly ResultSeries[]
  readonly timelines?: readonly ResultTimeline[]
  readonly curves?: readonly ResultCurve[]
  readonly notes?: readonly string[]
  /** Present when the user ended the run: the rows are of the runs until then. */
  readonly interrupted?: true
  /** What each target says about itself. */
  readonly versions?: Readonly<Record<string, string>>
}

/** A scenario whose result is a table: load, targets, columns, text. {@link createRowScenario} adds the rest. */
export interface RowScenario<Config> extends Pick<Scenario, 'name' | 'summary' | 'examples'> {
  readonly columns: readonly ResultColumn[]
  /** Keys of the columns that identify a row. */
  readonly identity: readonly string[]
  /** Text before the conditions in `--help`. */
  readonly help?: string
  addOptions(command: Command): void
  /** @throws {UsageError} for flags that cannot go together. */
  readConfig(values: OptionValues): Config
  /** Names of the targets, for conditions. */
  targets(config: Config): readonly string[]
  describe(config: Config): Readonly<Record<string, unknown>>
  heading(config: Config): string
  /** @throws {RunError} when nothing gave a result. */
  measure(config: Config, context: ScenarioContext): Promise<Rows>
  text(result: Rows, width: number | undefined): string
}

/** Completes a scenario with `--help`, `--assert`, files and text. */
export function createRowScenario<Config>(scenario: RowScenario<Config>): Scenario {
  const { name, summary, examples, columns, identity, help } = scenario
  return {
    name,
    summary,
    examples,
    assertHelp: `${help === undefined ? '' : `${help}\n\n`}Conditions for --assert: ${ROW_ASSERTION_FORM}
  without a target every row has to meet it; with two, their ratio. Columns:
  ${columns.map(({ key, unit }) => (unit === '' ? key : `${key} (${unit})`)).join(', ')}`,
    addOptions: (command) => scenario.addOptions(command),
    prepare(values) {
      const config = scenario.readConfig(values)
      const targets = scenario.targets(config)
      const assertions = ((values.assert ?? []) as string[]).map((text) => parseRowAssertion(text, columns, targets))
      return {
        config: scenario.describe(config),
        notes: [],
        heading: scenario.heading(config),
        async run(context) {
          const result = await scenario.measure(config, context)
          return {
            json: { columns, identity, notes: [], versions: {}, ...result },
            text: scenario.text(result, context.width),
            assertions: checkRowAssertions(assertions, result.rows, identity),
          }
        },
      }
    },
  }
}

export function verdictLines(rows: readonly ResultRow[], nameOf: (row: ResultRow) => string): string[] {
  const reasons = rows
    .filter(({ verdictReason }) => verdictReason !== null)
    .map((row) => `  ${nameOf(row)}: ${row.verdict}: ${row.verdictReason}`)
  return reasons.length === 0 ? [] : ['', 'Verdicts other than ok (worst of the repeats):', ...reasons]
}

export function noteLines(notes: readonly string[] = []): string[] {
  return notes.length === 0 ? [] : ['', 'Notes:', ...notes.map((note) => `  ${note}`)]
}

/** All members of a row, `null` where the scenario does not measure them. */
export const NOT_MEASURED = {
  publishedPerSecond: null,
  deliveriesPerSecond: null,
  bytesPerSecond: null,
  gapCount: null,
  duplicateCount: null,
  serverCpuSeconds: null,
  deliveriesPerServerCpuSecond: null,
  serverRssBytes: null,
  latencyMs: null,
  serverEventLoopLagMs: null,
  generatorCpuSeconds: null,
  generatorUtilization: null,
} as const

/** Cases that take turns. */
export interface Turns<Case> {
  readonly cases: readonly Case[]
  readonly repeat: number
  readonly columns: readonly ResultColumn[]
  readonly progress: Progress
  readonly signal: AbortSignal
  titleOf(testCase: Case): string
  /** The members that identify the row of a case. */
  identityOf(testCase: Case): Pick<ResultRow, 'target' | 'mode' | 'subscribers'>
  /** @throws {RunError} when it fails; the row then says why. */
  measure(testCase: Case, progress: RunProgress, repeat: number): Promise<ResultRow>
}

/**
 * Measures every case once per round, and combines the rounds.
 * @throws {RunError} when no measurement succeeded.
 */
export async function measureInTurns<Case>(turns: Turns<Case>): Promise<Rows> {
  const { cases, repeat: roundCount, columns, signal } = turns
  const progress = new RunProgress(turns.progress, cases.length * roundCount)
  const runs: ResultRow[] = []
  const byCase = new Map<Case, ResultRow[]>(cases.map((testCase) => [testCase, []]))
  try {
    rounds: for (let repeat = 1; repeat <= roundCount; repeat++) {
      for (const testCase of cases) {
        const title = turns.titleOf(testCase)
        progress.step(`${title}, round ${repeat}`)
        const row = await turns.measure(testCase, progress, repeat).catch((error: unknown): ResultRow | undefined => {
          if (signal.aborted && runs.length > 0) return undefined
          // The failure of one case must not discard the figures of the others.
          if (!(error instanceof RunError) || signal.aborted) throw error
          progress.note(`${title} failed: ${error.message}`)
          const failed = { verdict: 'failed', verdictReason: error.message, repeatCount: 1, spread: {} } as const
          return { ...NOT_MEASURED, ...turns.identityOf(testCase), ...failed }
        })
        if (row === undefined) break rounds
        runs.push({ ...row, repeat, order: runs.length + 1 })
        byCase.get(testCase)?.push(runs.at(-1) ?? row)
      }
    }
  } finally {
    progress.done()
  }
  requireMeasured(runs)
  const measured = [...byCase.values()].filter((own) => own.length > 0)
  return { rows: measured.map((own) => combineRuns(own, columns)), runs, ...interruptedBy(signal) }
}

/** For the JSON of a run that the user ended. */
export function interruptedBy({ aborted }: AbortSignal): Pick<Rows, 'interrupted'> {
  return aborted ? { interrupted: true } : {}
}

/** @throws {RunError} with the reason of the first when all have failed. */
export function requireMeasured(runs: readonly ResultRow[]): void {
  if (runs.every(({ verdict }) => verdict === 'failed')) {
    throw new RunError(runs[0]?.verdictReason ?? 'nothing to measure')
  }
}
