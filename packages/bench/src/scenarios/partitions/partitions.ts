import { type Command, InvalidArgumentError } from 'commander'
import { UsageError } from '../../exit-codes.js'
import { positiveInteger, positiveNumber } from '../../options.js'
import { percentileColumns } from '../../results/columns.js'
import type { ResultColumn } from '../../results/result.js'
import { parseTarget } from '../../targets/target-table.js'
import { createTrialScenario } from '../../trials/create-trial-scenario.js'
import type { RelayBrokerKind } from '../../trials/relay.js'
import { names, type TrialConfig } from '../../trials/trial-options.js'
import type { TrialScenario } from '../../trials/trial-scenario.js'
import { measurePartitions } from './measure.js'
import { HEAD_BYTES } from './node-traffic.js'
import { LAYOUTS, type Layout } from './rooms.js'

/** Settings of the scenario. */
export interface PartitionsConfig extends TrialConfig {
  readonly brokers: readonly PartitionsBroker[]
  readonly layouts: readonly Layout[]
  readonly rooms: number
  /** Of the rooms, those that the measured node needs. */
  readonly share: number
  /** Messages per second over all rooms. */
  readonly rate: number
  readonly seed: number
}

/** Brokers with a log that all nodes share. */
export type PartitionsBroker = Exclude<RelayBrokerKind, 'mesh'>

const BROKERS: readonly PartitionsBroker[] = ['redis', 'nats', 'rabbitmq']
const MAX_PARTITIONS = 64
const DEFAULT_SEED = 1

const perSecond = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: 'B/s',
  format: 'bytesPerSecond',
  better: 'lower',
})
const cpu = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: 's',
  format: 'seconds',
  better: 'lower',
})
const fault = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: '',
  format: 'count',
  better: 'lower',
  repeats: 'max',
})

const partitions: TrialScenario<PartitionsConfig> = {
  name: 'partitions',
  summary: 'what a node costs that needs a tenth of the logged keys, with the log in 1, 4 and 16 partitions',
  examples: [
    ['--json partitions.json', 'three brokers, five rows each: about three minutes'],
    ['--brokers nats --tiers 1,16 --layouts sharded', 'two rows'],
    ['--rooms 10000 --share 0.01 --rate 5000', 'more rooms, of which the node needs fewer'],
    ['--assert gapCount=0', 'in CI'],
  ],
  abilities: ['many-nodes'],
  subject: parseTarget('webmq-native'),
  hasOwnGenerator: true,
  defaults: { targets: [], tiers: [1, 4, 16], repeat: 1, duration: 5, warmup: 1, payload: 200 },
  tiersHelp: 'partitions of the log, one condition each',
  caseColumns: [
    { key: 'partitions', title: 'Partitions', unit: '', format: 'count' },
    { key: 'layout', title: 'Rooms', unit: '', format: 'text' },
  ],
  columns: [
    { key: 'neededCount', title: 'followed', unit: '', format: 'count' },
    { key: 'publishedPerSecond', title: 'Published/s', unit: '1/s', format: 'rate' },
    { key: 'deliveriesPerSecond', title: 'wanted/s', unit: '1/s', format: 'rate' },
    { key: 'receivedPerSecond', title: 'received/s', unit: '1/s', format: 'rate', better: 'lower' },
    perSecond('receivedBytesPerSecond', 'from the broker'),
    perSecond('sentBytesPerSecond', 'to the broker'),
    { key: 'connectionCount', title: 'Broker connections', unit: '', format: 'count', better: 'lower' },
    cpu('serverCpuSeconds', 'Node CPU'),
    cpu('brokerCpuSeconds', 'Broker CPU'),
    cpu('publisherCpuSeconds', 'Publisher CPU'),
    { key: 'serverRssBytes', title: 'Node RSS', unit: 'B', format: 'bytes', better: 'lower' },
    ...percentileColumns('latencyMs', '', ['p50', 'p99', 'max']),
    fault('gapCount', 'Lost'),
    fault('disorderCount', 'Twice or out of order'),
    { key: 'verdict', title: 'Verdict', unit: '', format: 'text' },
  ],
  addOptions(command: Command) {
    command
      .option('--brokers <names>', `brokers, taking turns: ${BROKERS.join(', ')}`, brokers, BROKERS)
      .option(
        '--layouts <names>',
        `rooms of the measured node: ${LAYOUTS.join(', ')} (in as few partitions as possible, or at random)`,
        layouts,
        LAYOUTS,
      )
      .option('--rooms <n>', 'rooms that are published to, in turn', positiveInteger, 1_000)
      .option('--share <n>', 'of the rooms, those that the measured node listens to', positiveNumber, 0.1)
      .option('--rate <n>', 'messages per second, over all rooms', positiveNumber, 2_000)
      .option('--seed <n>', 'decides the order of the rooms, and which are listened to', positiveInteger, DEFAULT_SEED)
  },
  readConfig(common, values) {
    const { brokers, layouts, rooms, share, rate, seed } = values as PartitionsConfig
    if (share > 1) throw new UsageError('--share is at most 1')
    if (common.payload < HEAD_BYTES) throw new UsageError(`--payload is at least ${HEAD_BYTES} bytes`)
    if (common.tiers.some((count) => count > MAX_PARTITIONS))
      throw new UsageError(`--tiers are at most ${MAX_PARTITIONS} partitions`)
    return { ...common, brokers, layouts, rooms, share, rate, seed }
  },
  // In one partition all layouts are the same.
  cases: ({ brokers, tiers, layouts }) =>
    brokers.flatMap((mode) =>
      tiers.flatMap((count) =>
        (count === 1 ? ['all'] : layouts).map((layout) => ({
          mode,
          subscribers: 0,
          fields: { partitions: count, layout },
        })),
      ),
    ),
  notes: ({ rooms, share, rate, payload, duration }) => [
    `One node publishes ${rate.toLocaleString('en')} messages/s of ${payload} bytes to ${rooms.toLocaleString('en')} rooms in turn. The measured node has handlers for ${Math.round(rooms * share).toLocaleString('en')} of them, and no clients. All rooms are logged.`,
    `Bytes are those of the TCP streams between the measured node and the broker, counted by a relay between them, in the bench's process. CPU is that of ${duration} s.`,
    'Rooms "sharded" lie in as few partitions as possible, "spread" ones are chosen at random.',
  ],
  measure: measurePartitions,
}

/** Reads `redis,nats`. */
function brokers(text: string): readonly PartitionsBroker[] {
  return names(text).map((name) => oneOf(BROKERS, name))
}

/** Reads `sharded,spread`. */
function layouts(text: string): readonly Layout[] {
  return names(text).map((name) => oneOf(LAYOUTS, name))
}

function oneOf<Name extends string>(known: readonly Name[], name: string): Name {
  const found = known.find((each) => each === name)
  if (found === undefined) throw new InvalidArgumentError(`Allowed are ${known.join(', ')}.`)
  return found
}

/** What nodes save that follow only the partitions they need. */
export const partitionsScenario = createTrialScenario(partitions)
