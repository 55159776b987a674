import { beforeAll, describe, expect, it } from 'vitest'
import { createNatsBroker } from 'webmq-broker-nats'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf } from 'webmq-conformance'
import { type ServiceKind, sharedService } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { seededRandom } from '../../../client/test/seeded-random.js'
import { MeshBroker } from '../../src/adapters/brokers/mesh/broker.js'
import type { Broker } from '../../src/kernel/ports/broker.js'
import { runGroupSchedule } from '../group-schedule.js'

const OPTIONS = {
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 16 * 1_048_576,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 10_000,
  maxPayloadBytes: 262_144,
  ...historyOf(),
}

let systemCount = 0

/** Makes the nodes of one system. */
async function systemOf(kind: ServiceKind | 'mesh', url: string): Promise<() => Broker | Promise<Broker>> {
  const brokerNamespace = `groups-${process.pid}-${++systemCount}`
  const options = { ...OPTIONS, broker: url, brokerNamespace }
  if (kind === 'redis') return () => createRedisBroker(options)
  if (kind === 'nats') return () => createNatsBroker(options)
  if (kind === 'rabbitmq') return () => createRabbitmqBroker(options)
  const nodes: MeshBroker[] = []
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined }
  return () => {
    const peers = nodes.flatMap(({ address }) => (address === undefined ? [] : [address]))
    const listen = { host: '127.0.0.1', port: 0 }
    const node = new MeshBroker({ ...OPTIONS, brokerNamespace, listen, peers, secret: 'of this test', logger })
    nodes.push(node)
    return node
  }
}

describe.each<ServiceKind | 'mesh'>(inTurn(['redis', 'nats', 'rabbitmq', 'mesh']))('queue groups over %s', (kind) => {
  let url = ''
  beforeAll(async () => {
    if (kind !== 'mesh') url = (await sharedService(kind)).url
  })

  it.each([1])(
    'give each message to exactly one member, over moves, stops and crashes: seed %i',
    async (seed) => {
      const random = seededRandom(seed)
      const createBroker = await systemOf(kind, url)
      const options = { createBroker, random, publishCount: 40, crashes: true, answerMs: 500 }
      expect(await runGroupSchedule(options)).toEqual([])
    },
    60_000,
  )
})
