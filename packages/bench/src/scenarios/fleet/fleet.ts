import { RunError } from '../../exit-codes.js'
import type { ResultRow, ResultTimeline } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import type { Scenario, ScenarioContext } from '../../scenario.js'
import { checkRowAssertions, parseRowAssertion, ROW_ASSERTION_FORM } from '../../trials/row-assertions.js'
import { addFleetOptions, type FleetConfig, faultsHelp, readFleetConfig } from './options.js'
import { FLEET_COLUMNS, FLEET_IDENTITY, failedRow, fleetRows, fleetTarget } from './result.js'
import { observeFleet } from './stage.js'
import { fleetHeading, fleetText } from './text.js'
import { fleetTimeline } from './timeline.js'

/** Several nodes behind a load balancer, while one thing after the other breaks. */
export const fleetScenario: Scenario = {
  name: 'fleet',
  summary: 'nodes behind HAProxy while nodes, broker and network break: what is lost, and how long recovery takes',
  examples: [
    ['', 'three nodes, 300 users, Redis, every fault: about a minute'],
    [
      '--broker redis,nats,rabbitmq --html fleet.html --json fleet.json',
      'every broker; the page has a timeline of each',
    ],
    ['--faults rolling,kill --users 2000 --drain-per-second 200', 'a rolling restart and a crash, with more users'],
    ["--assert gapCount=0 --assert toldGapCount=0 --assert 'reconnectMs.p99@300,fault=kill < 2s'", 'in CI'],
  ],
  assertHelp: `Faults:
${faultsHelp()}

Conditions for --assert: ${ROW_ASSERTION_FORM}
  without a target every row has to meet it. Columns:
  ${FLEET_COLUMNS.map(({ key, unit }) => (unit === '' ? key : `${key} (${unit})`)).join(', ')}`,
  addOptions: addFleetOptions,
  prepare(values) {
    const config = readFleetConfig(values)
    const targets = config.brokers.map((kind) => fleetTarget(kind, config))
    const assertions = ((values.assert ?? []) as string[]).map((text) =>
      parseRowAssertion(text, FLEET_COLUMNS, targets),
    )
    return {
      config: { ...config },
      notes: [],
      heading: fleetHeading(config),
      async run(context) {
        const { rows, timelines } = await measureFleet(config, context)
        return {
          json: {
            columns: FLEET_COLUMNS,
            identity: FLEET_IDENTITY,
            rows,
            runs: rows,
            timelines,
            notes: [],
            versions: {},
          },
          text: fleetText(rows, context.width),
          assertions: checkRowAssertions(assertions, rows, FLEET_IDENTITY),
        }
      },
    }
  },
}

/** @throws {RunError} when no broker gave a result. */
async function measureFleet(config: FleetConfig, { progress: output, signal }: ScenarioContext) {
  const progress = new RunProgress(output, config.brokers.length)
  const rows: ResultRow[] = []
  const timelines: ResultTimeline[] = []
  try {
    for (const kind of config.brokers) {
      progress.step(`${kind}, ${config.backends} nodes, ${config.users.toLocaleString('en')} users`)
      try {
        const observation = await observeFleet(kind, { config, progress, signal })
        rows.push(...fleetRows(kind, config, observation))
        timelines.push(fleetTimeline(fleetTarget(kind, config), observation))
      } catch (error) {
        // The failure of one broker must not discard the figures of the others.
        if (!(error instanceof RunError) || signal.aborted || config.brokers.length === 1) throw error
        progress.note(`${kind} failed: ${error.message}`)
        rows.push(failedRow(kind, config, error.message))
      }
    }
  } finally {
    progress.done()
  }
  if (rows.every(({ verdict }) => verdict === 'failed')) {
    throw new RunError(rows[0]?.verdictReason ?? 'nothing to measure')
  }
  return { rows, timelines }
}
