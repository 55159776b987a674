import { randomBytes } from 'node:crypto'
import { type CommonBrokerOptions, historyOf } from 'webmq-conformance'
import { PartitionedBroker } from '../../src/brokers/partitioned/broker.js'
import type { Broker } from '../../src/ports/broker.js'
import type { HistoryOptions } from '../../src/ports/history-rules.js'
import { namespaceOf } from '../../src/ports/partition-of.js'

/** Makes an instance of an adapter. */
export type CreateAdapter = (options: CommonBrokerOptions & { readonly followsLog?: 'on-demand' }) => Promise<Broker>

/** Partitions of a log under test. */
const PARTITION_COUNT = 4

const OPTIONS: CommonBrokerOptions = {
  brokerNamespace: '',
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 64 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  maxPayloadBytes: 262_144,
  ...historyOf(),
}

export function freshNamespace(): string {
  return `test-${randomBytes(6).toString('hex')}`
}

/** Makes a node whose log has partitions, not started. @param create Makes an instance of the adapter. */
export async function createPartitioned(
  brokerNamespace: string,
  history: HistoryOptions,
  create: CreateAdapter,
  words = 1,
): Promise<Broker> {
  const options = { ...OPTIONS, ...history, brokerNamespace }
  return await PartitionedBroker.create({
    ...options,
    count: PARTITION_COUNT,
    words,
    base: await create({ ...options, ...historyOf(), retain: undefined }),
    createPartition: (partition) =>
      create({
        ...options,
        brokerNamespace: namespaceOf(brokerNamespace, partition, PARTITION_COUNT),
        followsLog: 'on-demand',
      }),
    onError: (error) => {
      throw error
    },
  })
}
