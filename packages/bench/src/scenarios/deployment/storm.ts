import { column, faults, JUDGEMENT_COLUMNS, percentileColumns } from '../../results/columns.js'
import { generatorShare, latencyMs } from '../../trials/trial.js'
import { per } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import {
  createDeploymentScenario,
  type DeploymentConfig,
  type DeploymentScenario,
  startLoadgen,
  tlsNotes,
  tryConnect,
  whyFailed,
} from './create-deployment-scenario.js'

const storm: DeploymentScenario<DeploymentConfig> = {
  name: 'storm',
  summary: 'connections made at a fixed rate: TCP, TLS, upgrade, token and the first message of the server',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '200 connections, 50 per second'],
    ['--url ws://127.0.0.1:8080 --tiers 5000 --connect-rate 5000 --no-limits', 'your own machine, as fast as it can'],
  ],
  defaults: { tiers: [200] },
  caseColumns: [],
  columns: [
    column('connectsPerSecond', 'Connects/s', 'rate', 'higher'),
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
    faults('failedCount', 'Failed'),
    ...JUDGEMENT_COLUMNS,
  ],
  readConfig: (common) => common,
  loadOf: ({ tiers }) => ({ connections: Math.max(...tiers) }),
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'deployment', subscribers, fields: {} })),
  notes: () => ['A connection is made when `welcome` has come. At most 32 handshakes are under way at once.'],
  async measure(context) {
    const { config, deployment, progress, testCase } = context
    const loadgen = await startLoadgen(context)
    progress.phase('connecting')
    const before = await loadgen.stats()
    const expectedMs = (testCase.subscribers / config.connectRate) * 1_000
    const connected = await progress.during(tryConnect(loadgen, testCase.subscribers, context), { expectedMs })
    const after = await loadgen.stats()
    const cpuUs = after.cpuUserUs + after.cpuSystemUs - before.cpuUserUs - before.cpuSystemUs
    const seconds = connected.durationUs / 1_000_000
    const generatorUtilization = generatorShare(cpuUs / 1_000_000, seconds, config.generatorThreads)
    return {
      figures: {
        connectsPerSecond: per(connected.ok, seconds),
        latencyMs: latencyMs(connected.latencyUs),
        failedCount: connected.failed,
        generatorCpuSeconds: cpuUs / 1_000_000,
        generatorUtilization,
        ...judge({
          failure:
            connected.failed > 0 ? `${connected.failed} connections failed: ${whyFailed(connected, deployment)}` : null,
          generatorUtilization,
        }),
      },
      notes: tlsNotes(connected),
    }
  },
}

/** Connects to a server that runs already. */
export const stormDeployment = createDeploymentScenario(storm)
