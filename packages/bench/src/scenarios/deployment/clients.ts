import { tlsOptionsOf } from '../../deployment/deployment.js'
import { UsageError } from '../../exit-codes.js'
import { LoadGenerator } from '../../generator/load-generator.js'
import { MIN_MESSAGE_SIZE_BYTES } from '../../load/payload.js'
import { positiveInteger, positiveNumber, seedNumber } from '../../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns } from '../../results/columns.js'
import type { Measured } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import { planOptionsOf } from '../clients/options.js'
import { summarizeClients } from '../clients/result.js'
import { ClientsRun } from '../clients/run.js'
import {
  createDeploymentScenario,
  type DeploymentConfig,
  type DeploymentContext,
  type DeploymentScenario,
} from './create-deployment-scenario.js'

interface ClientsDeploymentConfig extends DeploymentConfig {
  readonly listens: number
  /** Messages per second and client. */
  readonly publishRate: number
  readonly keyPoolSize: number
  readonly seed: number
}

/** Servers that are not the run's own show nothing of themselves. */
const NOTHING_TO_SEE = { ports: [], sample: async () => [], cpuSeconds: () => null, brokerCpuSeconds: () => null }

const clients: DeploymentScenario<ClientsDeploymentConfig> = {
  name: 'clients',
  summary: 'real clients that listen to keys of a pool and publish to it at a fixed rate',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '50 clients, 5 listens and 1 message/s each, 10 s'],
    ["--url wss://rt.example.com/ws --assert gapCount=0 --assert 'latencyMs.p99 < 50ms'", 'in CI'],
  ],
  hasOwnGenerator: true,
  tiersHelp: 'clients, one condition each',
  defaults: { tiers: [50], duration: 10, warmup: 2, payload: 1_024 },
  caseColumns: [],
  columns: [
    column('publishedPerSecond', 'Published/s', 'rate'),
    column('deliveriesPerSecond', 'Deliveries/s', 'rate', 'higher'),
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
    faults('gapCount', 'Lost'),
    faults('duplicateCount', 'Duplicates'),
    faults('reorderedCount', 'Out of order'),
    column('drainMs', 'Drain', 'ms', 'lower'),
    faults('reconnectCount', 'Reconnects'),
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--listens <n>', 'keys each client listens to', positiveInteger, 5)
      .option('--publish-rate <n>', 'messages per second and client', positiveNumber, 1)
      .option('--key-pool-size <n>', 'keys to choose from', positiveInteger, 25)
      .option('--seed <n>', 'decides keys and send times', seedNumber, 1)
  },
  readConfig(common, { listens, publishRate, keyPoolSize, seed }) {
    if (common.payload < MIN_MESSAGE_SIZE_BYTES) {
      throw new UsageError(`--payload must be at least ${MIN_MESSAGE_SIZE_BYTES} bytes: a message carries its number`)
    }
    return { ...common, listens: Math.min(listens, keyPoolSize), publishRate, keyPoolSize, seed }
  },
  loadOf({ tiers, publishRate, listens, keyPoolSize, payload }) {
    const connections = Math.max(...tiers)
    const publishesPerSecond = connections * publishRate
    const deliveriesPerSecond = (publishesPerSecond * connections * listens) / keyPoolSize
    const deliveredBytesPerSecond = deliveriesPerSecond * payload
    return { connections, publishesPerSecond, deliveriesPerSecond, deliveredBytesPerSecond }
  },
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'clients', subscribers, fields: {} })),
  notes: () => [
    'The clients are the library of applications, in threads of this process: for more than some hundreds take --scenario paced.',
  ],
  measure: measureClients,
}

async function measureClients({
  config,
  deployment,
  testCase,
  progress,
  signal,
  parts,
}: DeploymentContext<ClientsDeploymentConfig>): Promise<Measured> {
  const { url, token, keyPrefix } = deployment
  const settings = {
    ...config,
    clients: testCase.subscribers,
    backends: 1,
    broker: 'memory',
    transport: 'native',
    clientsBy: 'library',
    messageSize: config.payload,
    workers: config.generatorThreads,
  } as const
  const options = {
    planOptions: planOptionsOf(settings),
    messageSizeBytes: config.payload,
    urls: [url.href],
    workerCount: Math.min(config.generatorThreads, testCase.subscribers),
    access: { ...(token === undefined ? {} : { token }), tls: tlsOptionsOf(deployment), keyPrefix },
  }
  const load = await parts.add(() => new LoadGenerator(options))
  const observed = await new ClientsRun(settings, NOTHING_TO_SEE, load, progress, signal).observe()
  const { results, rates, irregularities, generator, verdictReason } = summarizeClients(settings, observed)
  const lostCount = results.expectedCount - results.deliveredCount
  const { publishErrorCount, firstPublishError } = irregularities
  const refused = publishErrorCount > 0 ? `${publishErrorCount} publishes failed: ${firstPublishError}` : null
  return {
    figures: {
      publishedPerSecond: rates.publishedPerSecond,
      deliveriesPerSecond: rates.deliveredPerSecond,
      bytesPerSecond: rates.deliveredPerSecond * config.payload,
      latencyMs: results.latencyMs,
      gapCount: lostCount,
      duplicateCount: results.duplicateCount,
      reorderedCount: results.reorderedCount,
      drainMs: results.drainMs,
      reconnectCount: irregularities.reconnectCount,
      generatorCpuSeconds: generator.cpuSeconds,
      generatorUtilization: generator.utilization,
      ...judge({
        lostCount,
        duplicateCount: results.duplicateCount,
        reorderedCount: results.reorderedCount,
        failure: refused,
        generatorLate: verdictReason,
      }),
    },
  }
}

export const clientsDeployment = createDeploymentScenario(clients)
