import { historyOf } from '../conformance/broker/history-of.js'
import { brokerSuite } from '../conformance/index.js'
import { sharedService } from '../services/index.js'
import { createRabbitmqBroker } from './rabbitmq-broker.js'

let systemCount = 0

brokerSuite(
  'rabbitmq',
  async () => {
    const { url, ctl } = await sharedService('rabbitmq')
    const namespace = `suite-${process.pid}-${++systemCount}`
    const ofNamespace = async (...args: readonly string[]) =>
      (await ctl(...args)).split('\n').filter((line) => line.includes(namespace))
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
          ...historyOf(),
        }),
      residue: async () => {
        const queues = await ofNamespace('list_queues', 'name')
        const bindings = await ofNamespace('list_bindings', 'source_name', 'destination_name')
        // The properties tell which node a connection is of.
        const connections = await ofNamespace('list_connections', 'client_properties')
        return [...queues, ...bindings, ...connections]
      },
    }
  },
  { history: false, ordered: false, confirms: true, queueGroups: false, durable: false, manyNodes: true },
)
