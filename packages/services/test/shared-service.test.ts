import { describe, expect, it } from 'vitest'
import { sharedService } from '../src/index.js'
import { pingNats, pingPostgres, pingRabbitmq, pingRedis } from '../src/ping.js'

/** The first to ask waits for the start: some 5 s of CPU for RabbitMQ on a machine that may be busy. */
const TIMEOUT_MS = 120_000
const PINGS = { rabbitmq: pingRabbitmq, redis: pingRedis, nats: pingNats, postgres: pingPostgres }

describe('a shared service', () => {
  it.each(['rabbitmq', 'redis', 'nats', 'postgres'] as const)(
    'is one %s for all who ask',
    { timeout: TIMEOUT_MS },
    async (kind) => {
      const [first, second] = await Promise.all([sharedService(kind), sharedService(kind)])
      expect(first.url).toBe(second.url)
      await PINGS[kind](Number(new URL(first.url).port))
    },
  )

  it('tells what rabbitmqctl says, and how it failed', { timeout: TIMEOUT_MS }, async () => {
    const rabbitmq = await sharedService('rabbitmq')
    // Other tests may have made some too, because it is shared.
    expect((await rabbitmq.ctl('list_vhosts', 'name')).split('\n')).toContain('/')
    await expect(rabbitmq.ctl('list_nothing')).rejects.toThrow('list_nothing')
  })
})
