import { RunError } from '../exit-codes.js'
import { findLoadgen } from '../loadgen/find.js'
import type { Progress } from '../progress.js'
import { IDENTITY_COLUMNS } from '../results/columns.js'
import type { ResultColumn, ResultRow, ResultSeries, ScenarioResult } from '../results/result.js'
import { RunProgress } from '../run-progress.js'
import type { TargetChoice } from '../targets/target-table.js'
import { measureOnce } from './measure-once.js'
import { combineRuns } from './medians.js'
import { interruptedBy, NOT_MEASURED, type Rows, requireMeasured } from './row-scenario.js'
import { makeRunCertificate } from './run-certificate.js'
import type { TrialConfig } from './trial-options.js'
import { caseTitle, planTrials, type TrialCase, type TrialStep } from './trial-plan.js'
import type { Figures, Measured, TrialScenario } from './trial-scenario.js'

/** A result, and each target's description of itself. */
export interface TrialResult extends ScenarioResult, Pick<Rows, 'interrupted'> {
  readonly versions: Readonly<Record<string, string>>
}

/**
 * Measures every target under every condition, one after the other; when it settles, no process of it is left.
 * @throws {RunError} when no measurement succeeded.
 */
export async function runTrials<Config extends TrialConfig>(
  scenario: TrialScenario<Config>,
  config: Config,
  { progress: output, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
): Promise<TrialResult> {
  signal.throwIfAborted()
  const program = scenario.hasOwnGenerator === true ? '' : await findLoadgen(output)
  const certificate = config.tls === true ? await makeRunCertificate() : undefined
  const cases = scenario.cases(config)
  const modeCount = new Set(cases.map(({ mode }) => mode)).size
  const steps = planTrials(cases, config.repeat, config.targets, scenario.isMeasured)
  const progress = new RunProgress(output, steps.length)
  const versions: Record<string, string> = {}
  const onVersion = (target: string, version: string) => {
    versions[target] = version
  }
  const measured: { readonly step: TrialStep<TargetChoice>; readonly outcome: Measured }[] = []
  try {
    for (const step of steps) {
      const round = config.repeat > 1 ? `, round ${step.repeat}` : ''
      progress.step(`${step.target.label}, ${caseTitle(step.testCase, modeCount)}${round}`)
      const outcome = await measureOnce(step, {
        scenario,
        config,
        program,
        ...(certificate === undefined ? {} : { tls: certificate.files }),
        progress,
        signal,
        onVersion,
      }).catch((error: unknown): Measured | undefined => {
        if (signal.aborted && measured.length > 0) return undefined
        // The failure of one target must not discard the figures of the others.
        if (!(error instanceof RunError) || signal.aborted) throw error
        progress.note(`${step.target.label} failed: ${error.message}`)
        return { figures: { verdict: 'failed', verdictReason: error.message } }
      })
      if (outcome === undefined) break
      measured.push({ step, outcome })
    }
  } finally {
    progress.done()
    await certificate?.remove()
  }
  const result = assemble(scenario, config, cases, measured)
  requireMeasured(result.runs)
  const played = Object.entries(versions).map(([target, version]) => `${target}: ${version}.`)
  return { ...result, notes: [...result.notes, ...played], versions, ...interruptedBy(signal) }
}

function assemble<Config extends TrialConfig>(
  scenario: TrialScenario<Config>,
  config: Config,
  cases: readonly TrialCase[],
  measured: readonly { readonly step: TrialStep<TargetChoice>; readonly outcome: Measured }[],
): ScenarioResult {
  const columns: ResultColumn[] = [...IDENTITY_COLUMNS, ...scenario.caseColumns, ...scenario.columns]
  const identity = [...IDENTITY_COLUMNS, ...scenario.caseColumns].map(({ key }) => key)
  const runs = measured.map(({ step, outcome }, index) => rowOf(step, outcome.figures, index + 1))
  const series = measured.flatMap(({ step, outcome }): ResultSeries[] =>
    (outcome.series ?? []).map((one) => ({
      target: step.target.label,
      subscribers: step.testCase.subscribers,
      condition: { mode: step.testCase.mode, ...step.testCase.fields },
      repeat: step.repeat,
      ...one,
    })),
  )
  const rows = cases.flatMap((testCase) =>
    config.targets.flatMap((target) => {
      const own = (_: ResultRow, index: number) =>
        measured[index]?.step.testCase === testCase && measured[index]?.step.target === target
      const ownRuns = runs.filter(own)
      return ownRuns.length === 0 ? [] : [combineRuns(ownRuns, columns)]
    }),
  )
  const notes = [...scenario.notes(config), ...measured.flatMap(({ outcome }) => outcome.notes ?? [])]
  return {
    scenario: scenario.name,
    columns,
    identity,
    rows: scenario.derive?.(rows) ?? rows,
    runs,
    ...(series.length === 0 ? {} : { series }),
    notes: [...new Set(notes)],
  }
}

function rowOf({ target, testCase, repeat }: TrialStep<TargetChoice>, figures: Figures, order: number): ResultRow {
  const { mode, subscribers, fields } = testCase
  const identity = { target: target.label, mode, subscribers, ...fields }
  return { ...identity, ...NOT_MEASURED, ...figures, repeat, order, repeatCount: 1, spread: {} }
}
