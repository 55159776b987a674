import type { Command } from 'commander'
import { RunError } from '../../exit-codes.js'
import { findLoadgen } from '../../loadgen/find.js'
import type { ResultRow } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import type { Scenario, ScenarioContext } from '../../scenario.js'
import { combineRuns } from '../../trials/medians.js'
import { checkRowAssertions, parseRowAssertion, ROW_ASSERTION_FORM } from '../../trials/row-assertions.js'
import { NOT_MEASURED } from '../../trials/run-trials.js'
import { addHistoryOptions, type HistoryCase, type HistoryConfig, readHistoryConfig } from './options.js'
import { HISTORY_COLUMNS, HISTORY_IDENTITY, historyRow, historyTarget } from './result.js'
import { observeHistory } from './run.js'
import { historyHeading, historyText } from './text.js'

/** Users who come, listen, read the last ten seconds, talk for a while and leave: AnyCable's broker benchmark. */
export const historyScenario: Scenario = {
  name: 'history',
  summary: 'virtual users who listen, read the last ten seconds and talk, on every broker, on one node and on three',
  examples: [
    ['', "AnyCable's broker benchmark, memory broker, 1,500 users: two and a half minutes"],
    ['--preset minute --broker redis', 'the same users for a minute, who come and go more often'],
    ['--preset minute --broker nats --backends 3', 'three nodes behind HAProxy'],
    ['--preset minute --all --json history.json', 'every broker, on 1 and on 3 backends, beside the figures of others'],
    ['--users 150 --senders-ratio 0.5 --sending-rate 0.7 --rounds 4 --duration 44', 'fewer users who say more'],
    ["--assert joinMissCount=0 --assert 'historyMs.p95 < 0.8ms'", 'in CI'],
  ],
  assertHelp: `Conditions for --assert: ${ROW_ASSERTION_FORM}
  without a target every row has to meet it. Columns:
  ${HISTORY_COLUMNS.map(({ key, unit }) => (unit === '' ? key : `${key} (${unit})`)).join(', ')}`,
  addOptions(command: Command) {
    addHistoryOptions(command)
  },
  prepare(values) {
    const config = readHistoryConfig(values)
    const targets = config.cases.map((testCase) => historyTarget(testCase, config))
    const assertions = ((values.assert ?? []) as string[]).map((text) =>
      parseRowAssertion(text, HISTORY_COLUMNS, targets),
    )
    return {
      config: { ...config },
      notes: [],
      heading: historyHeading(config),
      async run(context) {
        const { rows, runs } = await measureHistory(config, context)
        return {
          json: { columns: HISTORY_COLUMNS, identity: HISTORY_IDENTITY, rows, runs, notes: [], versions: {} },
          text: historyText(rows, runs, context.width),
          assertions: checkRowAssertions(assertions, rows, HISTORY_IDENTITY),
        }
      },
    }
  },
}

/** @throws {RunError} when no run gave a result. */
async function measureHistory(config: HistoryConfig, { progress: output, signal }: ScenarioContext) {
  const program = await findLoadgen(output)
  const steps = Array.from({ length: config.repeat }, (_, round) =>
    config.cases.map((testCase) => ({ testCase, repeat: round + 1 })),
  ).flat()
  const progress = new RunProgress(output, steps.length)
  const measured: { readonly testCase: HistoryCase; readonly row: ResultRow }[] = []
  try {
    for (const { testCase, repeat } of steps) {
      const nodes = testCase.backends === 1 ? '1 backend' : `${testCase.backends} backends`
      progress.step(`${testCase.broker}, ${nodes}, ${config.users.toLocaleString('en')} users, round ${repeat}`)
      const row = await measureOnce(testCase, config, { program, progress, signal })
      measured.push({ testCase, row: { ...row, repeat, order: measured.length + 1 } })
    }
  } finally {
    progress.done()
  }
  const runs = measured.map(({ row }) => row)
  if (runs.every(({ verdict }) => verdict === 'failed')) {
    throw new RunError(runs[0]?.verdictReason ?? 'nothing to measure')
  }
  const rows = config.cases.map((testCase) => {
    const own = measured.filter((one) => one.testCase === testCase)
    return combineRuns(
      own.map(({ row }) => row),
      HISTORY_COLUMNS,
    )
  })
  return { rows, runs }
}

async function measureOnce(
  testCase: HistoryCase,
  config: HistoryConfig,
  context: Omit<Parameters<typeof observeHistory>[1], 'config'>,
): Promise<ResultRow> {
  try {
    return historyRow(testCase, config, await observeHistory(testCase, { config, ...context }))
  } catch (error) {
    // The failure of one broker must not discard the figures of the others.
    if (!(error instanceof RunError) || context.signal.aborted) throw error
    context.progress.note(`${testCase.broker} failed: ${error.message}`)
    return {
      ...NOT_MEASURED,
      target: historyTarget(testCase, config),
      mode: 'history',
      subscribers: config.users,
      backends: testCase.backends,
      rounds: config.rounds,
      verdict: 'failed',
      verdictReason: error.message,
      repeatCount: 1,
      spread: {},
    }
  }
}
