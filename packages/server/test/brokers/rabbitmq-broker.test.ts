import { connect } from 'amqplib'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { brokerSuite, historyOf } from 'webmq-conformance'
import { sharedService } from 'webmq-services'

let systemCount = 0

/**
 * Prints queues, the ends of bindings and connections, one per line. One call: each start of rabbitmqctl costs a second
 * of CPU. The properties of a connection name its node.
 */
const LIST_ALL = `
  Show = fun(Term) -> io:format("~0p~n", [Term]) end,
  [Show(Name) || {resource, _, queue, Name} <- rabbit_amqqueue:list_names()],
  [Show(End) || {binding, _, _, {resource, _, _, End}, _} <- rabbit_binding:list(<<"/">>)],
  [Show(Connection) || Connection <- rabbit_networking:connection_info_all([client_properties])],
  ok.`

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
      const ofNodes = async () =>
        (await ctl('eval', LIST_ALL)).split('\n').filter((line) => line.includes(namespace) && !line.includes(log))
      return {
        createNode: (history = historyOf(...rules)) =>
          createRabbitmqBroker({
            broker: url,
            brokerNamespace: namespace,
            brokerTimeoutMs: 10_000,
            brokerStartTimeoutMs: 10_000,
            brokerHeartbeatMs: 5_000,
            brokerMaxPendingBytes: 67_108_864,
            dedupeWindowMs: 60_000,
            dedupeMaxIds: 1_000,
            maxPayloadBytes: 1_048_576,
            ...(hasHistory ? history : historyOf()),
          }),
        residue: ofNodes,
        end: async () => {
          const operator = await connect(url)
          await (await operator.createChannel()).deleteQueue(log)
          await operator.close()
        },
      }
    },
    {
      history: hasHistory,
      retained: false,
      ordered: false,
      sharedLog: hasHistory,
      confirms: true,
      queueGroups: true,
      durable: hasHistory,
      manyNodes: true,
    },
  )
}
