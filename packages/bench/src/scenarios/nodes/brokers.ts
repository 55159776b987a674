import { randomBytes } from 'node:crypto'
import type { NodeBrokerOptions } from '../../brokers/running-broker.js'
import { startBroker } from '../../brokers/running-broker.js'
import { type Parts, startService } from '../../parts.js'

/** What can connect the nodes. */
export const NODES_BROKERS = ['redis', 'redis-cluster', 'nats', 'nats-cluster', 'rabbitmq', 'mesh'] as const

export type NodesBroker = (typeof NODES_BROKERS)[number]

/** What a broker has sent so far, and what it holds; `null`: it does not say, or there is none. */
export interface BrokerLook {
  readonly sentBytes: number | null
  /** Connections of nodes. */
  readonly connections: number | null
  /** Subscriptions, consumers, queues and bindings. */
  readonly objects: number | null
}

export interface CountedBroker {
  nodeOptions(index: number): NodeBrokerOptions
  /** User and system time of its processes so far; `null`: it is part of the nodes. */
  cpuSeconds(): number | null
  /** Costs the broker some CPU time itself. */
  look(): Promise<BrokerLook>
}

const NOTHING: BrokerLook = { sentBytes: null, connections: null, objects: null }
const CLUSTER_SIZE = 3
const NAMESPACE_BYTES = 6
/** Of `rabbitmqctl`; bindings to the default exchange have a row each, too. */
const RABBITMQ_LISTS = ['queues', 'bindings', 'consumers']

/** Starts a private broker that keeps a log. @throws {RunError} when it is not available, or does not start. */
export async function startCountedBroker(kind: NodesBroker, nodeCount: number, parts: Parts): Promise<CountedBroker> {
  if (kind === 'mesh') {
    const mesh = await parts.add(() => startBroker({ kind }, nodeCount))
    return { nodeOptions: (index) => mesh.nodeOptions(index), cpuSeconds: () => null, look: async () => NOTHING }
  }
  const { service, broker, look } = await START[kind](parts)
  const brokerNamespace = `bench-${randomBytes(NAMESPACE_BYTES).toString('hex')}`
  return { nodeOptions: () => ({ broker, brokerNamespace }), cpuSeconds: () => service.cpuSeconds() ?? null, look }
}

/** What the nodes connect to. */
interface Started {
  readonly service: { cpuSeconds(): number | undefined }
  /** Its address, as the option `broker`. */
  readonly broker: string
  look(): Promise<BrokerLook>
}

const START: { readonly [Kind in Exclude<NodesBroker, 'mesh'>]: (parts: Parts) => Promise<Started> } = {
  redis: async (parts) => {
    const service = await parts.add(() => startService('redis', ({ startRedis }) => startRedis({ isPrivate: true })))
    return { service, broker: service.url, look: () => lookAtRedis([service.url]) }
  },
  'redis-cluster': async (parts) => {
    const service = await parts.add(() =>
      startService('redis', ({ startRedisCluster }) => startRedisCluster({ masters: CLUSTER_SIZE })),
    )
    const broker = `redis+cluster://${service.urls.map((url) => new URL(url).host).join()}`
    return { service, broker, look: () => lookAtRedis(service.urls) }
  },
  nats: async (parts) => {
    const { port, service } = await startService('nats', async ({ freePort, startNats }) => {
      const port = await freePort()
      return { port, service: await parts.add(() => startNats({ hasJetStream: true, args: ['-m', String(port)] })) }
    })
    return { service, broker: service.url, look: () => lookAtNats([port]) }
  },
  'nats-cluster': async (parts) => {
    const service = await parts.add(() =>
      startService('nats', ({ startNatsCluster }) => startNatsCluster({ servers: CLUSTER_SIZE })),
    )
    const broker = `nats://${service.urls.map((url) => new URL(url).host).join()}?replicas=${CLUSTER_SIZE}`
    return { service, broker, look: () => lookAtNats(service.monitorPorts) }
  },
  rabbitmq: async (parts) => {
    const service = await parts.add(() =>
      startService('rabbitmq', ({ startRabbitmq }) => startRabbitmq({ isPrivate: true })),
    )
    const rows = async (...args: readonly string[]) =>
      (await service.ctl(...args)).split('\n').filter((row) => row !== '')
    const look = async () => {
      const sent = (await rows('list_connections', 'send_oct')).map(Number)
      let objects = 0
      for (const list of RABBITMQ_LISTS) objects += (await rows(`list_${list}`)).length
      return { sentBytes: sum(sent), connections: sent.length, objects }
    }
    return { service, broker: service.url, look }
  },
}

async function lookAtRedis(urls: readonly string[]): Promise<BrokerLook> {
  return await startService('redis', async ({ redisCommand }) => {
    const looks = await Promise.all(
      urls.map(async (url) => {
        const port = Number(new URL(url).port)
        const info = await redisCommand(port, 'INFO')
        const figure = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
        return {
          sentBytes: figure('total_net_output_bytes'),
          // Its own is one of them.
          connections: figure('connected_clients') - 1,
          objects: figure('pubsub_channels') + figure('pubsub_patterns') + figure('pubsubshard_channels'),
        }
      }),
    )
    return together(looks)
  })
}

async function lookAtNats(ports: readonly number[]): Promise<BrokerLook> {
  const looks = await Promise.all(
    ports.map(async (port) => {
      const ask = async (page: string) =>
        (await (await fetch(`http://127.0.0.1:${port}/${page}`)).json()) as Readonly<Record<string, number>>
      const [{ out_bytes = 0, connections = 0, subscriptions = 0 }, { consumers = 0 }] = await Promise.all([
        ask('varz'),
        ask('jsz'),
      ])
      return { sentBytes: out_bytes, connections, objects: subscriptions + consumers }
    }),
  )
  return together(looks)
}

function together(looks: readonly { readonly [Key in keyof BrokerLook]: number }[]): BrokerLook {
  return {
    sentBytes: sum(looks.map(({ sentBytes }) => sentBytes)),
    connections: sum(looks.map(({ connections }) => connections)),
    objects: sum(looks.map(({ objects }) => objects)),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
