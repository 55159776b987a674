import { createNatsBroker } from 'webmq-broker-nats'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { createRedisBroker } from 'webmq-broker-redis'
import { brokerBehindSuite, brokerOptions, type CommonBrokerOptions, historyOf } from 'webmq-conformance'
import { type ServiceKind, sharedService, startFaultProxy } from 'webmq-services'
import type { Broker } from '../../src/kernel/ports/broker.js'

/** A link that stands still is not found during the test, and one that is cut at once. */
const HEARTBEAT_MS = 10_000

type Options = CommonBrokerOptions & { readonly broker: string }

const KINDS: readonly (readonly [ServiceKind, (options: Options) => Broker | Promise<Broker>])[] = [
  ['redis', createRedisBroker],
  ['nats', (options) => createNatsBroker({ ...options, maxPayloadBytes: 262_144 })],
  ['rabbitmq', createRabbitmqBroker],
]

for (const [kind, create] of KINDS) {
  for (const [fault, title] of [
    ['swallow', 'whose link stands still'],
    ['cut', 'that is cut off'],
  ] as const) {
    brokerBehindSuite(`${kind} ${title}`, async () => {
      const service = await sharedService(kind)
      const proxy = await startFaultProxy(service)
      const options = brokerOptions({ brokerHeartbeatMs: HEARTBEAT_MS, ...historyOf('#=10000') })
      return {
        createNode: (isFaulty) => create({ ...options, broker: isFaulty ? proxy.url : service.url }),
        inject: () => proxy[fault](),
        heal: () => proxy.heal(),
        end: () => proxy.stop(),
      }
    })
  }
}
