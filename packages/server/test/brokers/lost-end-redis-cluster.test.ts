import { startRedisCluster } from 'webmq-services'
import { createRedisBroker } from '../../src/brokers/redis/broker.js'
import { hostsOf, type Keeping, lostEndSuite, together } from './lost-end.js'

async function redisCluster(): Promise<Keeping> {
  const { nodes, urls } = await startRedisCluster({ args: ['--appendonly', 'yes'] })
  return together(`redis+cluster://${hostsOf(urls)}`, nodes)
}

lostEndSuite({ name: 'redis cluster', start: redisCluster, create: createRedisBroker })
