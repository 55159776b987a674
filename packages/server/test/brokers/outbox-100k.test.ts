import { it } from 'vitest'
import { startNats, startRabbitmq, startRedis } from 'webmq-services'
import { play } from './outbox-play.js'

const TIMEOUT_MS = 1_200_000

it.each([
  ['Redis', () => startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }), 100_000],
  ['NATS', () => startNats({ isPrivate: true, hasJetStream: true }), 20_000],
  ['RabbitMQ', () => startRabbitmq({ isPrivate: true }), 20_000],
] as const)(
  'rows are published once and in order while nodes, %s and PostgreSQL are killed',
  {
    timeout: TIMEOUT_MS,
  },
  async (_, startBroker, rowCount) => {
    await play(startBroker, rowCount)
  },
)
