import type { OptionValues } from 'commander'
import { formatCount } from '../report/format.js'
import { tableText } from '../report/table-text.js'
import { IDENTITY_COLUMNS } from '../results/columns.js'
import { cellOf } from '../results/result.js'
import type { Scenario, ScenarioOutcome, ScenarioRun } from '../scenario.js'
import { checkRowAssertions, parseRowAssertion, ROW_ASSERTION_FORM } from './row-assertions.js'
import { runTrials, type TrialResult } from './run-trials.js'
import { addTargetOption, addTrialOptions, describeConfig, readTrialConfig, type TrialConfig } from './trial-options.js'
import type { TrialScenario } from './trial-scenario.js'

/** Completes a scenario with flags, help, rounds, medians, assertions and the table. */
export function createTrialScenario<Config extends TrialConfig>(scenario: TrialScenario<Config>): Scenario {
  const { name, summary, examples, abilities, defaults, subject } = scenario
  const columns = [...IDENTITY_COLUMNS, ...scenario.caseColumns, ...scenario.columns]
  return {
    name,
    summary,
    examples,
    assertHelp: `Conditions for --assert: ${ROW_ASSERTION_FORM}
  without a target every row has to meet it; with two, their ratio. Columns:
  ${columns.map(({ key, unit }) => (unit === '' ? key : `${key} (${unit})`)).join(', ')}${builtInHelp(scenario.assertions)}`,
    addOptions(command) {
      if (subject === undefined) addTargetOption(command, defaults, abilities)
      addTrialOptions(command, defaults, scenario.tiersHelp)
      scenario.addOptions?.(command)
    },
    prepare(values: OptionValues): ScenarioRun {
      const config = scenario.readConfig(readTrialConfig(values, abilities, defaults, subject), values)
      const labels = config.targets.map(({ label }) => label)
      const assertions = [...(scenario.assertions ?? []), ...((values.assert ?? []) as string[])].map((text) =>
        parseRowAssertion(text, columns, labels),
      )
      return {
        config: describeConfig(config),
        notes: [],
        heading: heading(config),
        async run({ progress, signal, width }): Promise<ScenarioOutcome> {
          const result = await runTrials(scenario, config, { progress, signal })
          const { scenario: _, ...json } = result
          return {
            json,
            text: resultText(result, width),
            assertions: checkRowAssertions(assertions, result.rows, result.identity),
          }
        },
      }
    },
  }
}

function builtInHelp(assertions: readonly string[] = []): string {
  return assertions.length === 0 ? '' : `\nConditions of every run: ${assertions.join(', ')}`
}

function heading(config: TrialConfig): string {
  const { targets, tiers, repeat, ...rest } = describeConfig(config) as Record<string, unknown> & TrialConfig
  const settings = Object.entries(rest)
    .filter(([, value]) => value !== 0)
    .map(([key, value]) => `${key} ${Array.isArray(value) ? value.join(', ') : String(value)}`)
  return [
    `  Targets: ${targets.join(', ')}`,
    `  Tiers: ${tiers.map(formatCount).join('; ')}`,
    `  Repeats: ${repeat}, interleaved`,
    ...(settings.length === 0 ? [] : [`  Settings: ${settings.join(' · ')}`]),
  ].join('\n')
}

function resultText({ columns, identity, rows, notes }: TrialResult, width: number | undefined): string {
  const reasons = rows
    .filter(({ verdictReason }) => verdictReason !== null)
    .map((row) => {
      const name = identity.map((key) => cellOf(row, key)).filter((cell) => cell !== null)
      return `  ${name.join(', ')}: ${row.verdict}: ${row.verdictReason}`
    })
  return [
    tableText(columns, identity, rows, width),
    ...(reasons.length === 0 ? [] : ['', 'Verdicts other than ok (worst of the repeats):', ...reasons]),
    ...(notes.length === 0 ? [] : ['', 'Notes:', ...notes.map((note) => `  ${note}`)]),
  ].join('\n')
}
