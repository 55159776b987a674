import { positiveInteger, positiveNumber } from '../../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns } from '../../results/columns.js'
import { generatorShare, latencyMs } from '../../trials/trial.js'
import { per } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import {
  connect,
  createDeploymentScenario,
  type DeploymentConfig,
  type DeploymentScenario,
  startLoadgen,
  tlsNotes,
  whyClosed,
} from './create-deployment-scenario.js'

interface PingConfig extends DeploymentConfig {
  /** Of each connection. */
  readonly pings: number
  /** Milliseconds. */
  readonly interval: number
}

const ANSWER_TIMEOUT_MS = 30_000

const ping: DeploymentScenario<PingConfig> = {
  name: 'ping',
  summary: 'round trips of every connection, at an interval',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '100 connections, one ping a second each'],
    ['--url ws://127.0.0.1:8080 --tiers 1 --pings 100 --interval 10', 'one connection: the way itself'],
  ],
  defaults: { tiers: [100] },
  caseColumns: [],
  columns: [
    column('pingCount', 'Pings', 'count'),
    column('pingsPerSecond', 'Pings/s', 'rate'),
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'p999', 'max']),
    faults('missingCount', 'Missing'),
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--pings <n>', 'pings per connection', positiveInteger, 10)
      .option('--interval <ms>', 'from one ping of a connection to its next, evenly spread', positiveNumber, 1_000)
  },
  readConfig: (common, { pings, interval }) => ({ ...common, pings, interval }),
  loadOf({ tiers, interval }) {
    const connections = Math.max(...tiers)
    return { connections, pingsPerSecond: (connections * 1_000) / interval }
  },
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'app', subscribers, fields: {} })),
  notes: () => ['A ping is a message of webmq.v1 that the session layer of the server answers.'],
  async measure(context) {
    const { config, deployment, progress, testCase } = context
    const loadgen = await startLoadgen(context)
    progress.phase('connecting')
    const connected = await progress.during(connect(loadgen, testCase.subscribers, context))
    progress.phase('pinging')
    const before = await loadgen.stats()
    const expectedMs = config.pings * config.interval
    const pinging = loadgen.ping({
      kind: 'app',
      perConnection: config.pings,
      intervalMs: Math.round(config.interval),
      timeoutMs: Math.round(expectedMs) + ANSWER_TIMEOUT_MS,
    })
    const pinged = await progress.during(pinging, { expectedMs })
    const after = await loadgen.stats()
    const cpuUs = after.cpuUserUs + after.cpuSystemUs - before.cpuUserUs - before.cpuSystemUs
    const seconds = pinged.durationUs / 1_000_000
    const generatorUtilization = generatorShare(cpuUs / 1_000_000, seconds, config.generatorThreads)
    const missing = pinged.missing > 0 ? `${pinged.missing} pings were not answered` : null
    return {
      figures: {
        pingCount: pinged.count,
        pingsPerSecond: per(pinged.count, seconds),
        latencyMs: latencyMs(pinged.latencyUs),
        missingCount: pinged.missing,
        generatorCpuSeconds: cpuUs / 1_000_000,
        generatorUtilization,
        ...judge({ failure: whyClosed(after, deployment) ?? missing, generatorUtilization }),
      },
      notes: tlsNotes(connected),
    }
  },
}

/** Round trips to a server that runs already. */
export const pingDeployment = createDeploymentScenario(ping)
