import { RunError } from '../../exit-codes.js'
import type { ResultRow, ResultTimeline } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import type { ScenarioContext } from '../../scenario.js'
import { createRowScenario, type Rows, requireMeasured } from '../../trials/row-scenario.js'
import { addFleetOptions, type FleetConfig, faultsHelp, readFleetConfig } from './options.js'
import { FLEET_COLUMNS, FLEET_IDENTITY, type FleetPlace, failedRow, fleetRows, fleetTarget } from './result.js'
import { observeFleet } from './stage.js'
import { fleetHeading, fleetText } from './text.js'
import { fleetTimeline } from './timeline.js'

/** Several nodes behind a load balancer, while one thing after the other breaks. */
export const fleetScenario = createRowScenario({
  name: 'fleet',
  summary:
    'nodes behind a load balancer while nodes, broker and network break: what is lost, and how long recovery takes',
  examples: [
    ['', 'three nodes, 300 users, Redis, every fault: about a minute'],
    [
      '--broker redis,nats,rabbitmq --html fleet.html --json fleet.json',
      'every broker; the page has a timeline of each',
    ],
    ['--balancer haproxy,nginx --faults rolling,kill', 'the same behind both load balancers'],
    ['--faults rolling,kill --users 2000 --drain-per-second 200', 'a rolling restart and a crash, with more users'],
    [
      "--balancer nginx --event-streams 60 --assert 'reconnectMs.max@listensBy=SSE,fault=rolling < 2s'",
      'event streams',
    ],
    ["--assert gapCount=0 --assert toldGapCount=0 --assert 'reconnectMs.p99@300,fault=kill < 2s'", 'in CI'],
  ],
  help: `Faults:\n${faultsHelp()}`,
  columns: FLEET_COLUMNS,
  identity: FLEET_IDENTITY,
  addOptions: addFleetOptions,
  readConfig: readFleetConfig,
  targets: (config) => placesOf(config).map((place) => fleetTarget(place, config)),
  describe: (config) => ({ ...config }),
  heading: fleetHeading,
  measure: measureFleet,
  text: fleetText,
})

async function measureFleet(config: FleetConfig, { progress: output, signal }: ScenarioContext): Promise<Rows> {
  const places = placesOf(config)
  const progress = new RunProgress(output, places.length)
  const rows: ResultRow[] = []
  const timelines: ResultTimeline[] = []
  try {
    for (const place of places) {
      const { kind, balancer } = place
      progress.step(`${kind}, ${config.backends} nodes behind ${balancer}, ${config.users.toLocaleString('en')} users`)
      try {
        const observation = await observeFleet(kind, { config, balancer, progress, signal })
        rows.push(...fleetRows(place, config, observation))
        timelines.push(fleetTimeline(fleetTarget(place, config), observation))
      } catch (error) {
        // One failure must not discard the figures of the other brokers and balancers.
        if (!(error instanceof RunError) || signal.aborted || places.length === 1) throw error
        progress.note(`${kind} behind ${balancer} failed: ${error.message}`)
        rows.push(failedRow(place, config, error.message))
      }
    }
  } finally {
    progress.done()
  }
  requireMeasured(rows)
  return { rows, runs: rows, timelines }
}

/** Every broker behind every load balancer. */
function placesOf({ brokers, balancers }: FleetConfig): FleetPlace[] {
  return balancers.flatMap((balancer) => brokers.map((kind) => ({ kind, balancer })))
}
