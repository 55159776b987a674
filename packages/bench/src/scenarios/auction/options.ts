import { type Command, InvalidArgumentError, Option, type OptionValues } from 'commander'
import { type BrokerChoice, isEmbedded, parseBroker, withoutSecrets } from '../../brokers/broker-choice.js'
import { UsageError } from '../../exit-codes.js'
import { nonNegativeNumber, positiveInteger, type ServerOptions, TRANSPORTS } from '../../options.js'
import { counts, positiveNumbers } from '../../trials/trial-options.js'

export interface AuctionConfig {
  /** Connections, one row each. */
  readonly tiers: readonly number[]
  /** Server processes, one row each. */
  readonly nodes: readonly number[]
  /** Cores' worth of CPU time of each node, by place in `nodes`; empty: no limit. */
  readonly nodeCpus: readonly number[]
  /** The most connections are searched, from the first tier on, that get nearly all bids in time. */
  readonly isSearch: boolean
  readonly repeat: number
  /** Measured bids on each item. */
  readonly bids: number
  /** From one bid on an item to the next. */
  readonly intervalMs: number
  /** Bids on each item before the measured ones. */
  readonly warmup: number
  readonly items: number
  /** Exponent of the crowds of the items; 0: all alike. */
  readonly zipf: number
  /** All connections of an item are at one node. */
  readonly isSharded: boolean
  readonly hasCompression: boolean
  readonly hasTls: boolean
  /** Connections go through HAProxy. */
  readonly isBalanced: boolean
  readonly transport: ServerOptions['transport']
  /** With passwords; see {@link describeAuction}. */
  readonly broker: BrokerChoice
  readonly generatorThreads: number
}

/** The seed's tiers. */
const DEFAULT_TIERS = [100, 1_000, 3_500, 4_500, 10_000]
const DEFAULT_NODES = [1, 2, 4]
/** Open items of a gateway. */
const MAX_ITEMS = 1_000
/** HAProxy of the bench takes no more. */
const MAX_BALANCED_CONNECTIONS = 9_900

type Given = Omit<
  AuctionConfig,
  'nodeCpus' | 'isSearch' | 'intervalMs' | 'isSharded' | 'hasCompression' | 'hasTls' | 'isBalanced' | 'broker'
> & {
  readonly nodeCpus?: readonly number[]
  readonly capacity?: true
  readonly interval: number
  readonly broker: BrokerChoice
  readonly shard?: true
  readonly compression?: true
  readonly tls?: true
  readonly balancer?: true
}

export function addAuctionOptions(command: Command): void {
  command
    .option('--tiers <counts>', 'connections, one row each', counts, DEFAULT_TIERS)
    .option('--nodes <counts>', 'server processes, one row each', counts, DEFAULT_NODES)
    .option(
      '--node-cpus <shares>',
      "cores' worth of CPU time per node: one number, or one for each of --nodes",
      positiveNumbers,
    )
    .option('--capacity', 'search the most connections, from the first tier on, that get 90 % of the bids in time')
    .option('--bids <n>', 'measured bids on each item', positiveInteger, 10)
    .addOption(
      new Option('--interval <time>', 'from one bid on an item to the next, such as 500ms or 5s')
        .argParser(milliseconds)
        .default(5_000, '5s'),
    )
    .option('--warmup <n>', 'bids on each item before, not measured', wholeNumber, 2)
    .option('--items <n>', `auctioned items, at most ${MAX_ITEMS}`, positiveInteger, 1)
    .option('--zipf <exponent>', 'uneven crowds: item k has a share of 1/k^exponent', nonNegativeNumber, 0)
    .option('--shard', 'all connections of an item at one node; default: connections take nodes in turn')
    .option('--compression', 'permessage-deflate, also for short messages')
    .option('--tls', 'wss:// with a certificate of the run, checked by nobody')
    .option('--balancer', 'connections through HAProxy')
    .addOption(
      new Option('--broker <name>', 'nats, redis or rabbitmq, started by the run; or the address of a running one')
        .argParser(brokerOfProcesses)
        .default({ kind: 'nats' } satisfies BrokerChoice, 'nats'),
    )
    .addOption(new Option('--transport <name>', 'of the nodes').choices(TRANSPORTS).default('native'))
    .option('--repeat <n>', 'runs of each row; the table shows medians', positiveInteger, 1)
    .option('--generator-threads <n>', 'threads that read the connections', positiveInteger, 1)
}

/**
 * The settings with every default filled in.
 * @throws {UsageError} for settings that cannot be run.
 */
export function readAuctionConfig(values: OptionValues): AuctionConfig {
  const given = values as Given
  const { bids, interval, warmup, items, zipf, broker, transport, repeat, generatorThreads } = given
  const nodeCpus = given.nodeCpus ?? []
  const config: AuctionConfig = {
    tiers: given.tiers,
    nodes: given.nodes,
    nodeCpus: nodeCpus.length === 1 ? given.nodes.map(() => nodeCpus[0] ?? 0) : nodeCpus,
    isSearch: given.capacity === true,
    repeat,
    bids,
    intervalMs: interval,
    warmup,
    items,
    zipf,
    isSharded: given.shard === true,
    hasCompression: given.compression === true,
    hasTls: given.tls === true,
    isBalanced: given.balancer === true,
    transport,
    broker,
    generatorThreads,
  }
  const reason = impossibility(config)
  if (reason !== undefined) throw new UsageError(reason)
  return config
}

/** Why it cannot be run. */
function impossibility(config: AuctionConfig): string | undefined {
  const { items, zipf, isSharded, isBalanced, tiers, nodes, nodeCpus } = config
  if (nodeCpus.length !== 0 && nodeCpus.length !== nodes.length)
    return '--node-cpus has one number, or one for each of --nodes'
  if (items > MAX_ITEMS) return `--items is at most ${MAX_ITEMS}`
  if (zipf > 0 && items === 1) return '--zipf divides the connections among items: give --items as well'
  if (isSharded && items === 1) return '--shard puts each item on one node: give --items as well'
  if (isSharded && isBalanced) return '--shard chooses the node itself: leave out --balancer'
  if (isBalanced && config.hasTls) return 'the balancer of the bench speaks no TLS: leave out --balancer or --tls'
  if (isBalanced && Math.max(...tiers) > MAX_BALANCED_CONNECTIONS) {
    return `the balancer of the bench takes ${MAX_BALANCED_CONNECTIONS} connections: give --tiers`
  }
  return undefined
}

export function describeAuction({ broker, ...rest }: AuctionConfig): Record<string, unknown> {
  const address = broker.address === undefined ? {} : { brokerAddress: withoutSecrets(broker.address) }
  return { ...rest, broker: broker.kind, ...address }
}

/** Reads `500ms`, `5s` or `0.5s`. */
function milliseconds(text: string): number {
  const [, number = '', unit] = /^([\d.]+)(ms|s)$/.exec(text.trim()) ?? []
  const ms = nonNegativeNumber(number) * (unit === 's' ? 1_000 : 1)
  if (ms < 1) throw new InvalidArgumentError('It must be at least 1ms.')
  return ms
}

/** Reads an integer from zero up. */
function wholeNumber(text: string): number {
  const number = nonNegativeNumber(text)
  if (!Number.isSafeInteger(number)) throw new InvalidArgumentError('It must be a whole number.')
  return number
}

/** Reads `redis`, or an address. The gateway is a process of its own, which an embedded broker does not reach. */
function brokerOfProcesses(text: string): BrokerChoice {
  const choice = parseBroker(text)
  if (isEmbedded(choice.kind)) throw new InvalidArgumentError('Allowed are nats, redis, rabbitmq and addresses.')
  return choice
}
