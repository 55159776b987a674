import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { freePort, type Service, startRedis, startRedisCluster, startRedisSentinel } from 'webmq-services'
import { CutProxy } from './cut-proxy.js'
import { allAreUp, freshNamespace, publish, RECOVERY, readTexts, startLogging } from './redis-node.js'

/** A master whose replica takes its place. */
interface Pair {
  readonly address: string
  /** Resolves when the replica has `count` messages. */
  copied(count: number): Promise<void>
  /** The replica no longer takes in what is published. */
  holdBack(): Promise<void>
  /** The master is killed, and the replica takes its place. */
  promote(): Promise<void>
}

function clientOf(service: Service): Redis {
  const client = new Redis(service.url)
  onTestFinished(() => client.disconnect())
  return client
}

/** Its first copy of the master may take seconds. */
function hasCopied(replica: Redis, log: string, count: number): Promise<void> {
  return vi.waitFor(async () => expect(await replica.xlen(log)).toBe(count), RECOVERY)
}

async function startSentinelPair(brokerNamespace: string): Promise<Pair> {
  const set = await startRedisSentinel()
  onTestFinished(() => set.stop())
  const replica = clientOf(set.replica)
  let isHeldBack = false
  return {
    address: `redis+sentinel://${new URL(set.sentinel.url).host}/${set.masterName}`,
    copied: (count) => hasCopied(replica, `${brokerNamespace}/log`, count),
    holdBack: async () => {
      isHeldBack = true
      await replica.call('REPLICAOF', '127.0.0.1', '1')
    },
    promote: async () => {
      await set.master.kill()
      // The sentinel promotes only a replica of the master.
      if (isHeldBack) await replica.call('REPLICAOF', '127.0.0.1', new URL(set.master.url).port)
      await vi.waitFor(async () => expect(await replica.info('replication')).toContain('role:master'), RECOVERY)
    },
  }
}

async function startClusterPair(brokerNamespace: string): Promise<Pair> {
  const cluster = await startRedisCluster()
  onTestFinished(() => cluster.stop())
  const args = ['--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`, '--cluster-node-timeout', '2000']
  const service = await startRedis({ args })
  onTestFinished(() => service.stop())
  const replica = clientOf(service)
  const slot = Number(await replica.call('CLUSTER', 'KEYSLOT', `{${brokerNamespace}}`))
  const master = cluster.nodes[Math.floor((slot * cluster.nodes.length) / 16_384)]
  if (master === undefined) throw new Error(`no master of slot ${slot}`)
  const admin = clientOf(master)
  const [, busPort] = (await admin.config('GET', 'cluster-port')) as string[]
  await replica.call('CLUSTER', 'MEET', '127.0.0.1', new URL(master.url).port, busPort ?? '')
  const masterId = await admin.call('CLUSTER', 'MYID')
  await vi.waitFor(() => replica.call('CLUSTER', 'REPLICATE', masterId as string), RECOVERY)
  await vi.waitFor(async () => expect(await replica.info('replication')).toContain('master_link_status:up'), RECOVERY)
  const hosts = [...cluster.urls, service.url].map((url) => new URL(url).host).join()
  return {
    address: `redis+cluster://${hosts}`,
    copied: async (count) => {
      expect(await admin.xlen(`${brokerNamespace}/log:{${brokerNamespace}}`)).toBe(count)
      expect(await admin.wait(1, RECOVERY.timeout)).toBe(1)
    },
    holdBack: async () => {
      await replica.config('SET', 'masteruser', 'nobody')
      await replica.config('SET', 'masterauth', 'wrong')
      await replica.call('CLIENT', 'KILL', 'TYPE', 'master')
      await vi.waitFor(async () => expect(await replica.info('replication')).toContain('link_status:down'), RECOVERY)
    },
    promote: async () => {
      admin.disconnect()
      await master.kill()
      await replica.call('CLUSTER', 'FAILOVER', 'TAKEOVER')
      await vi.waitFor(async () => expect(await replica.cluster('INFO')).toContain('cluster_state:ok'), RECOVERY)
    },
  }
}

describe.each([
  ['behind sentinels', startSentinelPair],
  ['in a cluster', startClusterPair],
])('a replica of a redis %s', (_, startPair) => {
  it('that has all tells nobody a gap when it takes over', async () => {
    const brokerNamespace = freshNamespace()
    const { address, copied, promote } = await startPair(brokerNamespace)
    const nodes = [
      await startLogging(address, { brokerNamespace }),
      await startLogging(address, { brokerNamespace }),
    ] as const
    const [a, b] = nodes
    const [first] = await publish(a, 0, 5)
    await vi.waitFor(() => expect(b.sink.messages).toHaveLength(5), RECOVERY)
    await copied(5)
    await promote()
    for (const { broker } of nodes)
      await vi.waitFor(() => expect(broker.stats().lostCount).toBeGreaterThan(0), RECOVERY)
    await allAreUp(...nodes)
    await publish(b, 10, 12)
    await vi.waitFor(() => expect(a.sink.messages).toHaveLength(7), RECOVERY)
    for (const node of nodes) {
      expect(node.sink.gaps).toEqual([])
      expect(await readTexts(node, first)).toEqual({ texts: ['1', '2', '3', '4', '10', '11'], gap: undefined })
    }
  })

  it('that is behind its master is told as a gap by nodes that live', async () => {
    const brokerNamespace = freshNamespace()
    const { address, copied, holdBack, promote } = await startPair(brokerNamespace)
    const nodes = [
      await startLogging(address, { brokerNamespace }),
      await startLogging(address, { brokerNamespace }),
    ] as const
    const [a, b] = nodes
    const kept = await publish(a, 0, 5)
    await copied(5)
    await holdBack()
    const lost = await publish(a, 5, 10)
    await vi.waitFor(() => expect(b.sink.messages).toHaveLength(10), RECOVERY)
    await promote()
    await vi.waitFor(() => {
      for (const { sink } of nodes) expect(sink.gaps).not.toEqual([])
    }, RECOVERY)
    await allAreUp(...nodes)
    await publish(b, 10, 12)
    await vi.waitFor(() => expect(a.sink.messages).toHaveLength(12), RECOVERY)
    for (const node of [...nodes, await startLogging(address, { brokerNamespace })])
      for (const since of [...kept, ...lost])
        expect(await readTexts(node, since)).toEqual({ texts: ['10', '11'], gap: 'epoch-changed' })
  })

  it('that is behind its master is told as a gap where no node is left, from the first page on', async () => {
    const brokerNamespace = freshNamespace()
    const { address, copied, holdBack, promote } = await startPair(brokerNamespace)
    const before = await startLogging(address, { brokerNamespace })
    const kept = await publish(before, 0, 5)
    await copied(5)
    await holdBack()
    const lost = await publish(before, 5, 10)
    await before.broker.stop()
    await promote()
    const after = await startLogging(address, { brokerNamespace })
    for (const since of [...kept, ...lost])
      expect(await readTexts(after, since)).toEqual({ texts: [], gap: 'epoch-changed' })
    // Past the lost positions.
    const later = await publish(after, 10, 20)
    for (const node of [after, await startLogging(address, { brokerNamespace })]) {
      for (const since of [...kept, ...lost])
        expect(await readTexts(node, since)).toMatchObject({ gap: 'epoch-changed' })
      expect(await readTexts(node, later[8])).toEqual({ texts: ['19'], gap: undefined })
    }
  })
})

describe('a replica of a redis that is promoted while its master goes on', () => {
  it('is told to all nodes as a gap when those that stayed with the master come to it', async () => {
    const services = [await startRedis({ isPrivate: true }), await startRedis({ isPrivate: true })] as const
    onTestFinished(async () => void (await Promise.all(services.map((service) => service.stop()))))
    const [masterPort, replicaPort] = services.map(({ url }) => Number(new URL(url).port))
    const replica = clientOf(services[1])
    await replica.call('REPLICAOF', '127.0.0.1', `${masterPort}`)
    const brokerNamespace = freshNamespace()
    const links = await Promise.all(
      [0, 1].map(async () => {
        const link = { port: masterPort }
        const proxy = new CutProxy(() => Number(link.port))
        onTestFinished(() => proxy.stop())
        const { host, port } = await proxy.start()
        const node = await startLogging(`redis://${host}:${port}`, { brokerNamespace })
        const moveToReplica = () => {
          proxy.cut()
          link.port = replicaPort
          proxy.mend()
        }
        return { node, moveToReplica }
      }),
    )
    const [stayed, moved] = links
    if (stayed === undefined || moved === undefined) throw new Error('two nodes are needed')
    const kept = await publish(stayed.node, 0, 5)
    await vi.waitFor(() => expect(moved.node.sink.messages).toHaveLength(5), RECOVERY)
    await hasCopied(replica, `${brokerNamespace}/log`, 5)
    await replica.call('REPLICAOF', 'NO', 'ONE')
    moved.moveToReplica()
    await vi.waitFor(() => expect(moved.node.broker.stats().lostCount).toBe(1), RECOVERY)
    await allAreUp(moved.node)
    const lost = await publish(stayed.node, 5, 8)
    const theirs = await publish(moved.node, 10, 16)
    stayed.moveToReplica()
    await vi.waitFor(() => {
      for (const { node } of links) expect(node.sink.gaps).toEqual(['epoch-changed'])
    }, RECOVERY)
    await allAreUp(stayed.node, moved.node)
    await publish(stayed.node, 16, 17)
    for (const { node } of links)
      for (const since of [...kept, ...lost, ...theirs])
        expect(await readTexts(node, since)).toMatchObject({ gap: 'epoch-changed' })
  })
})
