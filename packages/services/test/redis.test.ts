import { Cluster, Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startRedis, startRedisCluster, startRedisSentinel } from '../src/index.js'

describe('a private redis', () => {
  it('keeps what was acknowledged over a kill when it is told to, until it is wiped', async () => {
    const service = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    onTestFinished(() => service.stop())
    const before = connect(service.url)
    await before.set('key', 'value')
    before.disconnect()
    await service.kill()
    await service.restart()
    const after = connect(service.url)
    expect(await after.get('key')).toBe('value')
    after.disconnect()
    await service.wipe?.()
    expect(await connect(service.url).get('key')).toBeNull()
  })

  it('is not alone: two run side by side', async () => {
    const [first, second] = await Promise.all([startRedis({ isPrivate: true }), startRedis({ isPrivate: true })])
    onTestFinished(async () => {
      await Promise.all([first.stop(), second.stop()])
    })
    await connect(first.url).set('key', 'first')
    expect(await connect(second.url).get('key')).toBeNull()
  })

  it('says why it did not start', async () => {
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toMatchObject({
      name: 'ServiceError',
      message: expect.stringContaining('no-such-option'),
    })
  })
})

describe('a redis cluster', () => {
  it('answers for every slot, and again after a node was killed and restarted', async () => {
    const cluster = await startRedisCluster({ masters: 3 })
    onTestFinished(() => cluster.stop())
    expect(cluster.urls).toHaveLength(3)
    const client = new Cluster([...cluster.urls], { lazyConnect: false })
    client.on('error', () => undefined) // Nodes come and go here; the commands tell.
    onTestFinished(() => client.disconnect())
    const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`)
    await Promise.all(keys.map((key) => client.set(key, key)))
    expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys)

    const [node] = cluster.nodes
    await node?.kill()
    await node?.restart()
    await vi.waitFor(() => Promise.all(keys.map((key) => client.set(key, key))), { interval: 50 })
    expect(cluster.cpuSeconds()).toBeGreaterThanOrEqual(0)
  })
})

describe('a redis sentinel', () => {
  it('makes the replica the master when the master is killed', async () => {
    const pair = await startRedisSentinel()
    onTestFinished(() => pair.stop())
    const sentinel = connect(pair.sentinel.url)
    const masterPort = async () =>
      ((await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', pair.masterName)) as string[])[1]
    expect(await masterPort()).toBe(new URL(pair.master.url).port)
    await pair.master.kill()
    await vi.waitFor(async () => expect(await masterPort()).toBe(new URL(pair.replica.url).port), { interval: 50 })
  })
})

function connect(url: string): Redis {
  const client = new Redis(url)
  client.on('error', () => undefined) // The command that fails tells.
  onTestFinished(() => client.disconnect())
  return client
}
