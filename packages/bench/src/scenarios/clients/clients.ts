import type { OptionValues } from 'commander'
import { type Assertion, checkAssertions, metricsHelp, parseAssertion } from '../../assertions.js'
import { BackendPool } from '../../backends/backend-pool.js'
import { type BrokerChoice, isEmbedded } from '../../brokers/broker-choice.js'
import { type RunningBroker, startBroker } from '../../brokers/running-broker.js'
import type { Load } from '../../generator/load.js'
import { LoadGenerator } from '../../generator/load-generator.js'
import { PlayedClients } from '../../generator/played-clients.js'
import { findLoadgen } from '../../loadgen/find.js'
import type { ClientsConfig } from '../../results/clients-report.js'
import type { Scenario, ScenarioContext, ScenarioOutcome, ScenarioRun } from '../../scenario.js'
import { CLIENTS_METRICS, clientsMetrics } from './metrics.js'
import { addClientsOptions, planOptionsOf, readClientsConfig } from './options.js'
import { summarizeClients } from './result.js'
import { ClientsRun } from './run.js'
import { clientsHeading, clientsText } from './text.js'

const SERVER_MAX_LISTENS = 128
const SERVER_MAX_PAYLOAD_BYTES = 256 * 1_024

/**
 * Many clients on one or more backends, as in applications with shared topics: each listens to some keys of a pool and
 * publishes to random ones at a fixed rate.
 */
export const clientsScenario: Scenario = {
  name: 'clients',
  summary: 'clients that listen to keys of a pool and publish to it at a fixed rate',
  examples: [
    ['', 'the default: 100 clients, 10 listens each, 5 messages/s each, 10 s'],
    ['--clients 10 --duration 5', 'quick test'],
    ['--clients 500 --backends 4 --publish-rate 10 --duration 30', 'high load, four nodes on a RabbitMQ of the run'],
    ['--clients 200 --backends 4 --broker redis', 'the same on Redis; nats and mesh likewise'],
    ['--clients 200 --backends 4 --broker amqp://localhost', 'on a broker that runs already'],
    ['--clients 400 --backends 4 --clients-by generator', 'clients of the load generator, which saturate later'],
    ['--clients 100 --key-pool-size 500', 'low contention: few listeners per key'],
    ['--clients 100 --key-pool-size 5', 'high contention: everybody gets everything'],
    ["--assert 'loss=0' --assert 'p99<10ms' --json result.json", 'in CI'],
  ],
  assertHelp: metricsHelp(CLIENTS_METRICS),
  addOptions: addClientsOptions,
  prepare(values: OptionValues): ScenarioRun {
    const assertions = ((values.assert ?? []) as string[]).map((text) => parseAssertion(text, CLIENTS_METRICS))
    const { config, broker, notes } = readClientsConfig(values)
    return {
      config: { ...config },
      notes,
      title: brokerTitle(config),
      heading: clientsHeading(config),
      run: async (context) => await runClients(config, broker, assertions, context),
    }
  },
}

/** Which broker the run uses, and how to take RabbitMQ. */
function brokerTitle({ broker, brokerAddress }: ClientsConfig): string {
  if (broker === 'memory') return ', broker: memory, in the one server; --broker rabbitmq takes RabbitMQ'
  const name = broker === 'rabbitmq' ? 'RabbitMQ' : broker
  if (brokerAddress !== undefined) return `, broker: ${name} at ${brokerAddress}`
  const other = broker === 'rabbitmq' ? '' : '; --broker rabbitmq takes RabbitMQ'
  return `, broker: ${name}${isEmbedded(broker) ? '' : ', started by this run'}${other}`
}

async function runClients(
  config: ClientsConfig,
  choice: BrokerChoice,
  assertions: readonly Assertion[],
  { progress, signal }: ScenarioContext,
): Promise<ScenarioOutcome> {
  signal.throwIfAborted()
  const backends = new BackendPool(config.backends)
  const stopping = new AbortController()
  const abort = () => stopping.abort(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  let load: Load | undefined
  let starting: Promise<RunningBroker> | undefined
  const observation = (async () => {
    const program = config.clientsBy === 'generator' ? await findLoadgen(progress) : undefined
    stopping.signal.throwIfAborted()
    progress.phase(choice.address === undefined && !isEmbedded(choice.kind) ? `starting ${choice.kind}` : 'starting')
    starting = startBroker(choice, config.backends)
    const broker = await starting
    stopping.signal.throwIfAborted()
    await backends.start((index) => ({
      ...broker.nodeOptions(index),
      transport: config.transport,
      maxListensPerConnection: Math.max(SERVER_MAX_LISTENS, config.listens),
      maxPayloadBytes: Math.max(SERVER_MAX_PAYLOAD_BYTES, config.messageSize),
    }))
    for (const { index, pid, port } of backends.backends)
      progress.note(`backend ${index}: port ${port}, process ${pid}`)
    stopping.signal.throwIfAborted()
    const loadOptions = {
      planOptions: planOptionsOf(config),
      messageSizeBytes: config.messageSize,
      urls: backends.backends.map(({ url }) => url),
      workerCount: config.workers,
    }
    load = program === undefined ? new LoadGenerator(loadOptions) : new PlayedClients({ program, ...loadOptions })
    const servers = {
      ports: backends.backends.map(({ port }) => port),
      sample: async () => await backends.sample(),
      brokerCpuSeconds: () => broker.cpuSeconds(),
    }
    return await new ClientsRun(config, servers, load, progress, stopping.signal).observe()
  })()
  try {
    const report = summarizeClients(
      config,
      await Promise.race([aborted(stopping.signal), backends.failed, observation]),
    )
    return {
      json: { ...report },
      text: clientsText(report),
      assertions: checkAssertions(assertions, clientsMetrics(report)),
    }
  } finally {
    signal.removeEventListener('abort', abort)
    stopping.abort()
    observation.catch(() => undefined) // If it was not the first to fail, it fails now because everything is taken away.
    await load?.stop()
    await backends.stop()
    // A backend that did not start left nothing behind, and the run has failed because of it.
    const broker = await starting?.catch(() => undefined)
    await broker?.stop()
    progress.done()
  }
}

/** Rejects when the signal is aborted; never resolves. */
async function aborted(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
