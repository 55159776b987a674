import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startNats, startRabbitmq, startRedis } from '../src/index.js'
import { pingRedis } from '../src/ping.js'

describe('a service given by URL', () => {
  it('is used, and neither killed, restarted nor stopped', async () => {
    const running = await startRedis({ isPrivate: true })
    onTestFinished(() => running.stop())
    give('WEBMQ_TEST_REDIS_URL', running.url)

    const given = await startRedis()
    expect(given).toMatchObject({ kind: 'redis', source: 'url', url: running.url })
    expect(given.cpuSeconds()).toBeUndefined()
    await expect(given.kill()).rejects.toMatchObject({ name: 'ServiceError' })
    await expect(given.restart()).rejects.toThrow('isPrivate')
    await expect(given.freeze()).rejects.toThrow('isPrivate')
    await expect(given.thaw()).rejects.toThrow('isPrivate')
    await given.stop()
    await pingRedis(Number(new URL(running.url).port))
  })

  it('is passed over by callers that ask for a private one, or bring settings', async () => {
    give('WEBMQ_TEST_REDIS_URL', 'redis://127.0.0.1:1')
    give('WEBMQ_TEST_NATS_URL', 'nats://127.0.0.1:1')
    const services = await Promise.all([
      startRedis({ isPrivate: true }),
      startRedis({ args: ['--maxmemory', '64mb'] }),
      startNats({ hasJetStream: true }),
    ])
    onTestFinished(async () => {
      await Promise.all(services.map((service) => service.stop()))
    })
    expect(services.map(({ source }) => source)).not.toContain('url')
  })

  it('is out of the reach of rabbitmqctl', async () => {
    give('WEBMQ_TEST_RABBITMQ_URL', 'amqp://user:secret@127.0.0.1:1')
    const given = await startRabbitmq()
    await expect(given.ctl('status')).rejects.toMatchObject({ name: 'ServiceError' })
    await expect(given.kill()).rejects.not.toThrow('secret')
  })
})

function give(variable: string, url: string): void {
  vi.stubEnv(variable, url)
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
}
