import { positiveInteger, positiveNumber } from '../../options.js'
import { addRateOption, measurePaced, type PacedConfig, paced } from '../paced.js'
import { measurePing, type PingConfig, ping } from '../ping.js'
import { measureConnects, storm } from '../storm.js'
import { createDeploymentScenario, type DeploymentConfig } from './create-deployment-scenario.js'

export const pacedDeployment = createDeploymentScenario<DeploymentConfig & PacedConfig>({
  ...paced,
  summary: 'one client publishes at a fixed rate to all others: latency, loss, order',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '100 connections, 10 messages/s'],
    ['--url ws://127.0.0.1:8080 --tiers 10,100,500 --rate 5,20', 'three sizes at two rates'],
    ["--url wss://rt.example.com/ws --assert gapCount=0 --assert 'latencyMs.p99 < 50ms'", 'in CI'],
  ],
  defaults: { tiers: [100], duration: 10, warmup: 1, payload: 100 },
  addOptions: (command) => addRateOption(command, [10]),
  // It checks the settings that both have.
  readConfig: (common, values) => ({ ...common, rates: paced.readConfig(common, values).rates }),
  loadOf({ tiers, rates, payload }) {
    const [connections, perSecond] = [Math.max(...tiers), Math.max(...rates)]
    return {
      connections,
      publishesPerSecond: perSecond,
      deliveriesPerSecond: connections * perSecond,
      deliveredBytesPerSecond: connections * perSecond * payload,
    }
  },
  cases: (config) => paced.cases(config).map((testCase) => ({ ...testCase, mode: 'deployment' })),
  notes: () => [
    'Latency is receipt less the intended moment of publishing, on one clock: publisher, network, server, network. "all" is that of the last receiver of each message.',
  ],
  measure: measurePaced,
})

export const pingDeployment = createDeploymentScenario<DeploymentConfig & PingConfig & { readonly interval: number }>({
  ...ping,
  summary: 'round trips of every connection, at an interval',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '100 connections, one ping a second each'],
    ['--url ws://127.0.0.1:8080 --tiers 1 --pings 100 --interval 10', 'one connection: the way itself'],
  ],
  defaults: { tiers: [100] },
  addOptions(command) {
    command
      .option('--pings <n>', 'pings per connection', positiveInteger, 10)
      .option('--interval <ms>', 'from one ping of a connection to its next, evenly spread', positiveNumber, 1_000)
  },
  readConfig: (common, values) => {
    const { pings, interval } = values as { readonly pings: number; readonly interval: number }
    return { ...common, pings, interval, kind: 'app' as const }
  },
  loadOf({ tiers, interval }) {
    const connections = Math.max(...tiers)
    return { connections, pingsPerSecond: (connections * 1_000) / interval }
  },
  notes: () => ['A ping is a message of webmq.v1 that the session layer of the server answers.'],
  measure: measurePing,
})

export const stormDeployment = createDeploymentScenario({
  name: storm.name,
  caseColumns: storm.caseColumns,
  columns: storm.columns,
  summary: 'connections made at a fixed rate: TCP, TLS, upgrade, token and the first message of the server',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '200 connections, 50 per second'],
    ['--url ws://127.0.0.1:8080 --tiers 5000 --connect-rate 5000 --no-limits', 'your own machine, as fast as it can'],
  ],
  defaults: { tiers: [200] },
  readConfig: (common) => common,
  loadOf: ({ tiers }) => ({ connections: Math.max(...tiers) }),
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'deployment', subscribers, fields: {} })),
  notes: () => ['A connection is made when `welcome` has come. At most 32 handshakes are under way at once.'],
  async measure({ config, testCase: { subscribers: count }, progress, startTrial }) {
    const trial = await startTrial({})
    progress.phase('connecting')
    const expectedMs = (count / config.connectRate) * 1_000
    return await measureConnects(trial, config, () => progress.during(trial.tryConnect({ count }), { expectedMs }))
  },
})
