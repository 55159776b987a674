import { it, vi } from 'vitest'
import { createNatsBroker } from 'webmq-broker-nats'
import { createRabbitmqBroker } from 'webmq-broker-rabbitmq'
import { createRedisBroker } from 'webmq-broker-redis'
import { historyOf } from 'webmq-conformance'
import { NatsModel } from './nats/model.js'
import { RabbitmqModel } from './rabbitmq/broker.js'
import { ModelRedis } from './redis/broker.js'
import { serveWire } from './serve.js'

const BROKERS = [
  { scheme: 'redis', create: createRedisBroker, model: () => new ModelRedis({ random: Math.random }) },
  { scheme: 'nats', create: createNatsBroker, model: () => new NatsModel() },
  { scheme: 'amqp', create: createRabbitmqBroker, model: () => new RabbitmqModel() },
]
const MUTE = { receive: () => undefined, closed: () => undefined }

// Symptom: a node stayed away for 30 s, though its broker was back. Cause: only the whole attempt to connect had a limit.
it.concurrent.for(BROKERS)(
  '$scheme: a node leaves a broker that takes its connection and says nothing',
  async ({ scheme, create, model: createModel }, { expect, onTestFinished }) => {
    const model = createModel()
    let isMute = false
    const served = await serveWire({
      port: model.port,
      connect: (link) => (isMute ? MUTE : model.connect(link)),
      kill: (lostCount) => model.kill(lostCount),
      start: () => model.start(),
    })
    const broker = await create({
      broker: `${scheme}://127.0.0.1:${served.port}`,
      brokerNamespace: 'mute',
      brokerTimeoutMs: 5_000,
      brokerStartTimeoutMs: 5_000,
      brokerHeartbeatMs: 400,
      brokerMaxPendingBytes: 1_048_576,
      dedupeWindowMs: 60_000,
      dedupeMaxIds: 1_000,
      maxPayloadBytes: 262_144,
      ...historyOf(),
    })
    onTestFinished(async () => {
      await broker.stop()
      await served.close()
    })
    const statuses: string[] = []
    await broker.start({
      deliver: () => false,
      gap: () => undefined,
      refused: () => undefined,
      status: (status) => statuses.push(status),
    })
    isMute = true
    model.kill(0)
    model.start()
    await vi.waitFor(() => expect(statuses.at(-1)).toBe('down'), { timeout: 5_000 })
    // It connects again within 200 ms.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    isMute = false
    await vi.waitFor(() => expect(statuses.at(-1)).toBe('up'), { timeout: 10_000 })
  },
)
