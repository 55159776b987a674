import { Option } from 'commander'
import type { BrokerKind } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import { positiveInteger } from '../../options.js'
import { tableText } from '../../report/table-text.js'
import { createRowScenario, noteLines, type Rows, verdictLines } from '../../trials/row-scenario.js'
import { addRunsOptions, brokersOption } from '../brokers/options.js'
import { type ClientsCase, measureClients } from '../brokers/run.js'
import { addRootOption } from '../clients/options.js'
import { besideByHand, EVERYDAY_COLUMNS, EVERYDAY_IDENTITY } from './result.js'

interface EverydayConfig {
  readonly target: readonly EverydayTarget[]
  readonly brokers: readonly BrokerKind[]
  readonly clients: number
  /** Nodes; memory has one. */
  readonly backends: number
  readonly repeat: number
  /** Seconds. */
  readonly duration: number
  readonly warmup: number
  readonly out?: string
  readonly root?: string
}

const TARGETS = ['webmq-native', 'by-hand'] as const
type EverydayTarget = (typeof TARGETS)[number]

const BROKERS: readonly BrokerKind[] = ['rabbitmq', 'redis', 'nats', 'mesh', 'memory']

/** The traffic of an ordinary application on WebMQ, and on a server by hand, over every broker. */
export const everydayScenario = createRowScenario<EverydayConfig>({
  name: 'everyday',
  summary: 'the traffic of an ordinary application over every broker, beside a server by hand',
  examples: [
    ['', '400 clients on 4 nodes, over memory on one; 1 KiB, 10 listens, 5 publishes/s each; 12 minutes'],
    ['--brokers redis --repeat 5', 'one broker, more precisely'],
    ["--assert 'webmq-native/by-hand serverCpuUsPerDelivery < 1.5'", 'in CI'],
  ],
  columns: EVERYDAY_COLUMNS,
  identity: EVERYDAY_IDENTITY,
  addOptions(command) {
    command
      .addOption(brokersOption(BROKERS))
      .addOption(
        new Option('--target <names>', `servers, taking turns: ${TARGETS.join(', ')}`)
          .argParser((text) => text.split(','))
          .default(TARGETS),
      )
      .option('--clients <n>', 'WebSocket clients', positiveInteger, 400)
      .option('--backends <n>', 'nodes; memory has one', positiveInteger, 4)
    addRunsOptions(command)
    addRootOption(command)
  },
  readConfig(values) {
    const { target, brokers, clients, backends, repeat, duration, warmup, out, root } = values as EverydayConfig
    const unknown = target.find((name) => !TARGETS.includes(name))
    if (unknown !== undefined) throw new UsageError(`there is no target '${unknown}'; there are ${TARGETS.join(', ')}`)
    const settings = { target, brokers, clients, backends, repeat, duration, warmup }
    return { ...settings, ...(out === undefined ? {} : { out }), ...(root === undefined ? {} : { root }) }
  },
  targets: ({ target }) => target,
  describe: (config) => ({ ...config }),
  heading: ({ target, brokers, clients, backends, repeat, duration, warmup }) =>
    [
      `  Servers: ${target.join(', ')}, over ${brokers.join(', ')}`,
      `  Clients: ${clients} on ${backends} nodes (memory: 1), by the load generator`,
      `  Repeats: ${repeat}, interleaved, of ${duration} s after ${warmup} s of warm-up`,
    ].join('\n'),
  async measure({ target, brokers, clients, backends, ...config }, context) {
    const cases = brokers.flatMap((broker) =>
      target.map(
        (name): ClientsCase => ({
          target: name === 'by-hand' ? name : 'webmq',
          broker,
          clients,
          backends: broker === 'memory' ? 1 : backends,
        }),
      ),
    )
    const settings = { transport: 'native', clientsBy: 'generator', columns: EVERYDAY_COLUMNS } as const
    return besideByHand(await measureClients({ ...config, ...settings, cases }, context))
  },
  text: everydayText,
})

function everydayText({ rows, notes }: Rows, width: number | undefined): string {
  const verdicts = verdictLines(rows, ({ target, mode }) => `${target}, ${mode}`)
  return [
    // First: whether the figures below are the servers'.
    ...(verdicts.length === 0 ? [] : [...verdicts.slice(1), '']),
    tableText(EVERYDAY_COLUMNS, EVERYDAY_IDENTITY, rows, width),
    ...noteLines(notes),
  ].join('\n')
}
