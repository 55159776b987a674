import { setTimeout } from 'node:timers/promises'
import { createNatsBroker } from 'webmq-broker-nats'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { createRedisBroker } from 'webmq-broker-redis'
import {
  type Service,
  type ServiceOptions,
  startNats,
  startNatsCluster,
  startRabbitmq,
  startRedis,
  startRedisCluster,
} from 'webmq-services'
import { hostsOf, type Keeping, type Kind, together } from './lost-end.js'

/** Brokers with a log that stays on a disk. */
export const KINDS = {
  redis: {
    name: 'redis',
    start: (options) => startRedis({ ...options, args: ['--appendonly', 'yes'] }),
    create: createRedisBroker,
  },
  'redis-cluster': { name: 'redis cluster', start: redisCluster, create: createRedisBroker },
  nats: {
    name: 'nats',
    start: (options) => startNats({ ...options, hasJetStream: true }),
    create: createNatsBroker,
  },
  'nats-cluster': {
    name: 'nats cluster',
    start: natsCluster,
    afterFullDisk: { says: /JetStream sends no message in time/, repair: (broker) => broker.restart() },
    create: createNatsBroker,
  },
  rabbitmq: {
    name: 'rabbitmq',
    start: (options) => startRabbitmq({ ...options, isPrivate: true }),
    // RabbitMQ 3.10 takes as long to record that it has streams.
    settled: () => setTimeout(1_000),
    afterFullDisk: {
      says: /home node '.*' is down or inaccessible|timeout_waiting_for_leader/,
      repair: async (broker) => await broker.wipe?.(),
    },
    create: createRabbitmqBroker,
  },
} as const satisfies Record<string, Kind>

async function redisCluster(options?: ServiceOptions): Promise<Keeping> {
  const { nodes, urls } = await startRedisCluster({ ...options, args: ['--appendonly', 'yes'] })
  return together(`redis+cluster://${hostsOf(urls)}`, nodes)
}

async function natsCluster(options?: ServiceOptions): Promise<Keeping> {
  const servers = await startNatsServers(options)
  return together(natsUrlOf(servers), servers)
}

/** The address of a NATS cluster of three whose log is on each server. */
export function natsUrlOf(servers: readonly Service[]): string {
  return `nats://${hostsOf(servers.map(({ url }) => url))}?replicas=3`
}

/** A NATS cluster of three. */
export async function startNatsServers(options?: ServiceOptions): Promise<readonly Service[]> {
  return (await startNatsCluster(options)).nodes
}
