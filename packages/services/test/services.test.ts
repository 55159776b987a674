import { existsSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type NatsOptions,
  type RabbitmqOptions,
  type RedisOptions,
  type Service,
  startNats,
  startPostgres,
  startRabbitmq,
  startRedis,
} from '../src/index.js'
import { pingNats, pingPostgres, pingRabbitmq, pingRedis } from '../src/ping.js'
import { dataFolderOf, processesOf } from './running-processes.js'

interface Kind {
  readonly kind: Service['kind']
  readonly start: (options: RabbitmqOptions & RedisOptions & NatsOptions) => Promise<Service>
  readonly ping: (port: number) => Promise<void>
}

const KINDS: readonly Kind[] = [
  { kind: 'rabbitmq', start: startRabbitmq, ping: pingRabbitmq },
  { kind: 'redis', start: startRedis, ping: pingRedis },
  { kind: 'nats', start: startNats, ping: pingNats },
  { kind: 'postgres', start: startPostgres, ping: pingPostgres },
]
/** The start of a RabbitMQ is some 5 s of CPU, and this does three on a machine that may be busy. */
const TIMEOUT_MS = 120_000

describe('a private service', () => {
  it.each(KINDS)(
    '$kind answers, stands still, dies, comes back on its port, and leaves nothing behind',
    { timeout: TIMEOUT_MS },
    async ({ kind, start, ping }) => {
      const service = await start({ isPrivate: true })
      onTestFinished(() => service.stop())
      const port = Number(new URL(service.url).port)
      expect(service).toMatchObject({ kind, source: expect.stringMatching(/^(binary|package|container)$/) })
      expect(port).toBeLessThan(32_768)
      await ping(port)
      const folder = dataFolderOf(kind)
      expect(processesOf(folder)).not.toEqual([])

      await service.freeze()
      await expect(ping(port)).rejects.toMatchObject({ name: 'ServiceError' })
      await service.thaw()
      await ping(port)

      await service.kill()
      // Erlang's name server runs on, with the shell that watches it.
      expect(processesOf(folder).filter(({ name }) => !['epmd', 'sh'].includes(name))).toEqual([])
      await expect(ping(port)).rejects.toMatchObject({ name: 'ServiceError' })
      const usedBefore = service.cpuSeconds() ?? 0
      await service.restart()
      await ping(port)
      expect(service.cpuSeconds()).toBeGreaterThanOrEqual(usedBefore)
      expect(dataFolderOf(kind)).toBe(folder)

      await service.stop()
      await service.stop()
      expect(processesOf(folder)).toEqual([])
      expect(existsSync(folder)).toBe(false)
      await expect(ping(port)).rejects.toThrow('does not answer')
      await expect(service.restart()).rejects.toMatchObject({ name: 'ServiceError' })
    },
  )
})
