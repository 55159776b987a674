import { connect } from 'amqplib'
import { brokerSuite, historyOf } from 'webmq-conformance'
import { sharedService } from 'webmq-services'
import { createRabbitmqBroker } from '../../src/brokers/rabbitmq/broker.js'

let systemCount = 0

const SYSTEMS = [
  { name: 'rabbitmq', rules: [], hasHistory: false },
  { name: 'rabbitmq with a log', rules: ['#=1000'], hasHistory: true },
]

for (const { name, rules, hasHistory } of SYSTEMS) {
  brokerSuite(
    name,
    async () => {
      const { url, ctl } = await sharedService('rabbitmq')
      const namespace = `suite-${process.pid}-${++systemCount}`
      const log = `${namespace}.log`
      // The log outlives the nodes.
      const ofNodes = async (...args: readonly string[]) =>
        (await ctl(...args)).split('\n').filter((line) => line.includes(namespace) && !line.includes(log))
      return {
        createNode: () =>
          createRabbitmqBroker({
            broker: url,
            brokerNamespace: namespace,
            brokerTimeoutMs: 10_000,
            brokerStartTimeoutMs: 10_000,
            brokerHeartbeatMs: 5_000,
            brokerMaxPendingBytes: 67_108_864,
            dedupeWindowMs: 60_000,
            dedupeMaxIds: 1_000,
            ...historyOf(...rules),
          }),
        residue: async () => {
          const lists = await Promise.all([
            ofNodes('list_queues', 'name'),
            ofNodes('list_bindings', 'source_name', 'destination_name'),
            // The properties tell which node a connection is of.
            ofNodes('list_connections', 'client_properties'),
          ])
          return lists.flat()
        },
        end: async () => {
          const operator = await connect(url)
          await (await operator.createChannel()).deleteQueue(log)
          await operator.close()
        },
      }
    },
    {
      history: hasHistory,
      ordered: false,
      sharedLog: hasHistory,
      confirms: true,
      queueGroups: false,
      durable: hasHistory,
      manyNodes: true,
    },
  )
}
