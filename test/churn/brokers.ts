import { createRequire } from 'node:module'
import path from 'node:path'
import { freePort, startNats, startRabbitmq, startRedis } from 'webmq-services'
import type { BrokerName } from './options.js'

/** A broker of its own for one play. */
export interface ChurnBroker {
  readonly nodeCount: number
  /** Flags of a node. */
  flagsOf(index: number): readonly string[]
  /** What is at the broker, by name. */
  counts(): Promise<Readonly<Record<string, number>>>
  stop(): Promise<void>
}

const NODES = 3

export const START: { readonly [Name in BrokerName]: () => Promise<ChurnBroker> } = {
  memory,
  redis,
  nats,
  rabbitmq,
  mesh,
}

async function memory(): Promise<ChurnBroker> {
  return { nodeCount: 1, flagsOf: () => [], counts: async () => ({}), stop: async () => undefined }
}

async function mesh(): Promise<ChurnBroker> {
  const places = await Promise.all(Array.from({ length: NODES }, async () => `127.0.0.1:${await freePort()}`))
  const flagsOf = (index: number) => ['--broker', `mesh://${places.join()}`, '--mesh-listen', places[index] ?? '']
  return { nodeCount: NODES, flagsOf, counts: async () => ({}), stop: async () => undefined }
}

/** What is used of a client of `ioredis`. */
interface RedisClient {
  dbsize(): Promise<number>
  pubsub(what: string): Promise<unknown>
  info(section: string): Promise<string>
  disconnect(): void
}

async function redis(): Promise<ChurnBroker> {
  const service = await startRedis({ isPrivate: true })
  // The library of the server, which this folder has not.
  const requireOf = createRequire(path.join(process.cwd(), 'packages/server/package.json'))
  const { Redis } = requireOf('ioredis') as { readonly Redis: new (url: string) => RedisClient }
  const client = new Redis(service.url)
  return {
    nodeCount: NODES,
    flagsOf: () => ['--broker', service.url],
    async counts() {
      const info = await client.info('clients')
      return {
        keys: await client.dbsize(),
        channels: ((await client.pubsub('CHANNELS')) as unknown[]).length,
        patterns: Number(await client.pubsub('NUMPAT')),
        connections: Number(/connected_clients:(\d+)/.exec(info)?.[1]),
      }
    },
    async stop() {
      client.disconnect()
      await service.stop()
    },
  }
}

async function nats(): Promise<ChurnBroker> {
  const port = await freePort()
  const service = await startNats({ hasJetStream: true, args: ['-m', `${port}`] })
  const ask = async (page: string) =>
    (await (await fetch(`http://127.0.0.1:${port}/${page}`)).json()) as Readonly<Record<string, number>>
  return {
    nodeCount: NODES,
    flagsOf: () => ['--broker', service.url],
    async counts() {
      const [{ num_subscriptions }, { num_connections }, { streams, consumers }] = await Promise.all([
        ask('subsz'),
        ask('connz'),
        ask('jsz'),
      ])
      return {
        subscriptions: num_subscriptions ?? Number.NaN,
        connections: num_connections ?? Number.NaN,
        streams: streams ?? Number.NaN,
        consumers: consumers ?? Number.NaN,
      }
    },
    stop: () => service.stop(),
  }
}

const RABBITMQ_LISTS = ['queues', 'exchanges', 'bindings', 'consumers', 'connections', 'channels']

async function rabbitmq(): Promise<ChurnBroker> {
  const service = await startRabbitmq({ isPrivate: true })
  return {
    nodeCount: NODES,
    flagsOf: () => ['--broker', service.url],
    async counts() {
      const counts: Record<string, number> = {}
      for (const list of RABBITMQ_LISTS) {
        const rows = await service.ctl(`list_${list}`)
        counts[list] = rows.split('\n').filter((row) => row !== '').length
      }
      return counts
    },
    stop: () => service.stop(),
  }
}
