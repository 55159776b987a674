import { type Command, InvalidArgumentError, Option } from 'commander'
import type { BrokerKind } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import { positiveInteger, type ServerOptions, TRANSPORTS } from '../../options.js'
import { tableText } from '../../report/table-text.js'
import { CLIENTS_COLUMNS, CLIENTS_IDENTITY, clientsTarget } from '../../results/clients-record.js'
import type { ClientsConfig } from '../../results/clients-report.js'
import { createRowScenario, type Rows, verdictLines } from '../../trials/row-scenario.js'
import { addClientsByOption } from '../clients/options.js'
import { addRunsOptions, brokersOption } from './options.js'
import { type ClientsSize, isPossible, measureClients } from './run.js'

export interface BrokersConfig {
  readonly brokers: readonly BrokerKind[]
  readonly sizes: readonly ClientsSize[]
  readonly repeat: number
  readonly duration: number
  /** Seconds of the same traffic before, not counted. */
  readonly warmup: number
  readonly transport: ServerOptions['transport']
  readonly clientsBy: ClientsConfig['clientsBy']
  /** Folder for the files of every single run; absent: they are not kept. */
  readonly out?: string
}

const DEFAULT_BROKERS: readonly BrokerKind[] = ['rabbitmq', 'redis', 'nats', 'mesh']
const DEFAULT_SIZES = ['100x1', '200x1', '300x1', '200x4', '300x4', '400x4'].map(readSize)

/** The `clients` scenario on several brokers at several sizes, each run a process of its own, as one table. */
export const brokersScenario = createRowScenario<BrokersConfig>({
  name: 'brokers',
  summary: 'the clients scenario on every broker, with 100 to 400 clients on 1 and 4 backends: one table',
  examples: [
    ['', 'six sizes on four brokers, three times'],
    ['--brokers redis --sizes 200x4 --repeat 1', 'one row: 200 clients, 4 backends'],
    ["--out results --assert gapCount=0 --assert 'latencyMs.p99 < 50ms'", 'every run kept as JSON and text'],
  ],
  columns: CLIENTS_COLUMNS,
  identity: CLIENTS_IDENTITY,
  addOptions(command: Command) {
    command
      .addOption(brokersOption(DEFAULT_BROKERS))
      .addOption(
        new Option('--sizes <list>', 'clients x backends')
          .argParser(sizes)
          .default(DEFAULT_SIZES, DEFAULT_SIZES.map(sizeText).join(',')),
      )
      .addOption(new Option('--transport <name>', 'of the backends').choices(TRANSPORTS).default('native'))
    addRunsOptions(command)
    addClientsByOption(command)
  },
  readConfig(values) {
    const { brokers, sizes, repeat, duration, warmup, transport, clientsBy, out } = values as BrokersConfig
    if (!sizes.some((size) => brokers.some((broker) => isPossible(size, broker)))) {
      throw new UsageError(
        '--brokers memory is embedded in each backend and connects none of them: give sizes like 100x1',
      )
    }
    const settings = { brokers, sizes, repeat, duration, warmup, transport, clientsBy }
    return out === undefined ? settings : { ...settings, out }
  },
  targets: ({ brokers, transport }) => brokers.map((broker) => clientsTarget(transport, broker)),
  describe: (config) => ({ ...config, sizes: config.sizes.map(sizeText) }),
  heading: ({ brokers, sizes, repeat, duration, warmup, transport, clientsBy }) =>
    [
      `  Brokers: ${brokers.join(', ')} (transport ${transport})`,
      `  Sizes: ${sizes.map(sizeText).join(', ')} (clients x backends)`,
      `  Clients by: ${clientsBy}`,
      `  Repeats: ${repeat}, interleaved, of ${duration} s after ${warmup} s of warm-up`,
    ].join('\n'),
  async measure({ brokers, sizes, ...config }, context) {
    const cases = sizes.flatMap((size) =>
      brokers.filter((broker) => isPossible(size, broker)).map((broker) => ({ ...size, broker })),
    )
    return await measureClients({ ...config, cases, columns: CLIENTS_COLUMNS }, context)
  },
  text: brokersText,
})

/** Leaves out columns with the same value in all rows, which the commands show. */
const SHOWN_IDENTITY = ['target', 'subscribers', 'backends']

function brokersText({ rows }: Rows, width: number | undefined): string {
  const columns = CLIENTS_COLUMNS.filter(({ key }) => !CLIENTS_IDENTITY.includes(key) || SHOWN_IDENTITY.includes(key))
  return [
    tableText(columns, SHOWN_IDENTITY, rows, width),
    ...verdictLines(rows, ({ target, subscribers, backends }) => `${target}, ${subscribers} x ${backends}`),
    '',
    'Each row again:',
    ...rows.map(({ command }) => `  ${command}`),
  ].join('\n')
}

/** Reads `100x1,400x4`. */
function sizes(text: string): ClientsSize[] {
  return text.split(',').map(readSize)
}

function readSize(text: string): ClientsSize {
  const [clients = '', backends = '', ...more] = text.trim().split('x')
  if (more.length > 0) throw new InvalidArgumentError('It must be a list of CLIENTSxBACKENDS, such as 100x1,400x4.')
  return { clients: positiveInteger(clients), backends: positiveInteger(backends) }
}

function sizeText({ clients, backends }: ClientsSize): string {
  return `${clients}x${backends}`
}
