import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import { brokerSuite, historyOf } from 'webmq-conformance'
import { sharedService } from 'webmq-services'
import { createRedisBroker } from '../../src/brokers/redis/broker.js'
import { behindFirstWord, rulesBehindFirstWord } from './first-word.js'
import { createPartitioned, freshNamespace } from './partitioned-node.js'

const WORD = 'suite'

let url = ''
let plain: Redis

beforeAll(async () => {
  url = (await sharedService('redis')).url
  plain = new Redis(url)
})
afterAll(async () => {
  await plain.quit()
})

brokerSuite(
  'redis with partitions',
  () => {
    const brokerNamespace = freshNamespace()
    return {
      createNode: async (history = historyOf('#=1000')) =>
        behindFirstWord(
          await createPartitioned(brokerNamespace, rulesBehindFirstWord(history, WORD), (options) =>
            createRedisBroker({ ...options, broker: url }),
          ),
          WORD,
        ),
      residue: async () => (await plain.pubsub('CHANNELS', `${brokerNamespace}*`)) as string[],
    }
  },
  {
    history: true,
    retained: false,
    ordered: true,
    sharedLog: true,
    confirms: true,
    queueGroups: true,
    durable: true,
    manyNodes: true,
  },
)
