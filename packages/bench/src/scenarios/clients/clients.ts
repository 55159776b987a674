import type { OptionValues } from 'commander'
import { BACKEND_LIMITS, Backends } from '../../backends.js'
import { type BrokerChoice, isEmbedded } from '../../brokers/broker-choice.js'
import { startBroker } from '../../brokers/running-broker.js'
import { EXIT } from '../../exit-codes.js'
import type { Load } from '../../generator/load.js'
import { LoadGenerator } from '../../generator/load-generator.js'
import { PlayedClients } from '../../generator/played-clients.js'
import { Interrupt } from '../../interrupt.js'
import { findLoadgen } from '../../loadgen/find.js'
import { withParts } from '../../parts.js'
import { clientsTarget } from '../../results/clients-record.js'
import type { ClientsConfig } from '../../results/clients-report.js'
import type { Scenario, ScenarioContext, ScenarioOutcome, ScenarioRun } from '../../scenario.js'
import { checkRowAssertions, parseRowAssertion, type RowAssertion } from '../../trials/row-assertions.js'
import { CLIENTS_METRICS, clientsMetrics } from './metrics.js'
import { addClientsOptions, planOptionsOf, readClientsConfig } from './options.js'
import { summarizeClients } from './result.js'
import { ClientsRun } from './run.js'
import { clientsHeading, clientsText } from './text.js'

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
  assertHelp: `Metrics for --assert (with =, !=, <, <=, >, >=; units us ms s, %, B KB MB GB KiB MiB GiB):
  ${CLIENTS_METRICS.map(({ key, format }) => `${key} (${format})`).join(', ')}`,
  addOptions: addClientsOptions,
  prepare(values: OptionValues): ScenarioRun {
    const assertions = ((values.assert ?? []) as string[]).map((text) => parseRowAssertion(text, CLIENTS_METRICS, []))
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
  assertions: readonly RowAssertion[],
  { progress, signal }: ScenarioContext,
): Promise<ScenarioOutcome> {
  const interrupt = new Interrupt(signal)
  const observing = withParts(interrupt.broken, async (parts) => {
    const loadgen = config.clientsBy === 'generator' ? await findLoadgen(progress) : undefined
    progress.phase(choice.address === undefined && !isEmbedded(choice.kind) ? `starting ${choice.kind}` : 'starting')
    const broker = await parts.add(() => startBroker(choice, config.backends))
    const settingsOf = (index: number) => ({
      ...broker.nodeOptions(index),
      ...(config.root === undefined ? {} : { root: config.root }),
      maxListensPerConnection: Math.max(BACKEND_LIMITS.maxListensPerConnection, config.listens),
      maxPayloadBytes: Math.max(BACKEND_LIMITS.maxPayloadBytes, config.messageSize),
    })
    const program = config.target === 'by-hand' ? 'by-hand.mjs' : 'webmq.mjs'
    const backends = await parts.add(() => new Backends(config.backends, config.transport, settingsOf, program))
    await backends.ready()
    for (const [index, port] of backends.ports.entries()) {
      progress.note(`backend ${index}: port ${port}, process ${backends.pids[index]}`)
    }
    const options = {
      planOptions: planOptionsOf(config),
      messageSizeBytes: config.messageSize,
      urls: backends.urls(),
      workerCount: config.workers,
    }
    const load = await parts.add(
      (): Load =>
        loadgen === undefined ? new LoadGenerator(options) : new PlayedClients({ program: loadgen, ...options }),
    )
    const servers = {
      ports: backends.ports,
      sample: async () => await backends.sample(),
      cpuSeconds: () => backends.cpuSeconds(),
      brokerCpuSeconds: () => broker.cpuSeconds(),
    }
    const observation = await new ClientsRun(config, servers, load, progress, parts.signal, interrupt).observe()
    return { observation, version: backends.version }
  })
  const { observation, version } = await observing.finally(() => progress.done())
  const report = summarizeClients(config, observation)
  const target = clientsTarget(config.transport, config.broker, config.target)
  return {
    json: { ...report, versions: { [target]: version } },
    text: `${clientsText(report)}\n\nServer: ${version}`,
    assertions: checkRowAssertions(assertions, [clientsMetrics(report)], []),
    ...(report.irregularities.publishErrorCount > 0 ? { exitCode: EXIT.failedPublishes } : {}),
  }
}
