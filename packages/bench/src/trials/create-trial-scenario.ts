import { formatCount } from '../report/format.js'
import { tableText } from '../report/table-text.js'
import { IDENTITY_COLUMNS } from '../results/columns.js'
import { cellOf } from '../results/result.js'
import type { Scenario } from '../scenario.js'
import { createRowScenario, noteLines, verdictLines } from './row-scenario.js'
import { runTrials } from './run-trials.js'
import { addTargetOption, addTrialOptions, describeConfig, readTrialConfig, type TrialConfig } from './trial-options.js'
import type { TrialScenario } from './trial-scenario.js'

/** Completes a scenario of targets and tiers with flags, help, rounds, medians, assertions and the table. */
export function createTrialScenario<Config extends TrialConfig>(scenario: TrialScenario<Config>): Scenario {
  const { name, summary, examples, abilities, defaults, subject } = scenario
  const identityColumns = [...IDENTITY_COLUMNS, ...scenario.caseColumns]
  const columns = [...identityColumns, ...scenario.columns]
  const identity = identityColumns.map(({ key }) => key)
  return createRowScenario<Config>({
    name,
    summary,
    examples,
    columns,
    identity,
    addOptions(command) {
      if (subject === undefined) addTargetOption(command, defaults, abilities)
      addTrialOptions(command, defaults, scenario.tiersHelp)
      scenario.addOptions?.(command)
    },
    readConfig: (values) => scenario.readConfig(readTrialConfig(values, abilities, defaults, subject), values),
    targets: ({ targets }) => targets.map(({ label }) => label),
    describe: describeConfig,
    heading,
    measure: async (config, { progress, signal }) => {
      const { scenario: _, ...result } = await runTrials(scenario, config, { progress, signal })
      return result
    },
    text: ({ rows, notes }, width) =>
      [
        tableText(columns, identity, rows, width),
        ...verdictLines(rows, (row) =>
          identity
            .map((key) => cellOf(row, key))
            .filter((cell) => cell !== null)
            .join(', '),
        ),
        ...noteLines(notes),
      ].join('\n'),
  })
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
