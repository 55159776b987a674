import { expect, it, onTestFinished } from 'vitest'
import { startNatsCluster } from '../src/nats-cluster.js'

it('starts three servers with one leader, which hold a log together', { timeout: 120_000 }, async () => {
  const cluster = await startNatsCluster()
  onTestFinished(() => cluster.stop())
  expect(new Set(cluster.urls).size).toBe(3)
  const leaders = await Promise.all(
    cluster.monitorPorts.map(async (port) => {
      const page = (await (await fetch(`http://127.0.0.1:${port}/jsz`)).json()) as {
        readonly meta_cluster: { readonly leader: string; readonly cluster_size: number }
      }
      return page.meta_cluster
    }),
  )
  expect(leaders.map(({ cluster_size }) => cluster_size)).toEqual([3, 3, 3])
  expect(new Set(leaders.map(({ leader }) => leader)).size).toBe(1)
})

it('refuses two, which have no majority', async () => {
  await expect(startNatsCluster({ servers: 2 })).rejects.toThrow('a cluster has 3 to 7 servers, not 2')
})
