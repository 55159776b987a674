import { RunError } from '../../exit-codes.js'
import type { ResultRow, ResultTimeline } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import type { ScenarioContext } from '../../scenario.js'
import { createRowScenario, type Rows, requireMeasured } from '../../trials/row-scenario.js'
import { addFleetOptions, type FleetConfig, faultsHelp, readFleetConfig } from './options.js'
import { FLEET_COLUMNS, FLEET_IDENTITY, failedRow, fleetRows, fleetTarget } from './result.js'
import { observeFleet } from './stage.js'
import { fleetHeading, fleetText } from './text.js'
import { fleetTimeline } from './timeline.js'

/** Several nodes behind a load balancer, while one thing after the other breaks. */
export const fleetScenario = createRowScenario({
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
  help: `Faults:\n${faultsHelp()}`,
  columns: FLEET_COLUMNS,
  identity: FLEET_IDENTITY,
  addOptions: addFleetOptions,
  readConfig: readFleetConfig,
  targets: (config) => config.brokers.map((kind) => fleetTarget(kind, config)),
  describe: (config) => ({ ...config }),
  heading: fleetHeading,
  measure: measureFleet,
  text: fleetText,
})

async function measureFleet(config: FleetConfig, { progress: output, signal }: ScenarioContext): Promise<Rows> {
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
  requireMeasured(rows)
  return { rows, runs: rows, timelines }
}
