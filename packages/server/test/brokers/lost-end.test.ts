import { startNats, startRedis } from 'webmq-services'
import { createNatsBroker } from '../../src/brokers/nats/broker.js'
import { createRedisBroker } from '../../src/brokers/redis/broker.js'
import { lostEndSuite } from './lost-end.js'

// Clusters and RabbitMQ have files of their own, which take turns in `npm test`: each of their restarts takes many seconds.
lostEndSuite({ name: 'redis', start: () => startRedis({ args: ['--appendonly', 'yes'] }), create: createRedisBroker })
lostEndSuite({ name: 'nats', start: () => startNats({ hasJetStream: true }), create: createNatsBroker })
