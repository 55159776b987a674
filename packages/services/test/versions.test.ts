import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { obtainService, startRabbitmq, startRedis } from '../src/index.js'
import { fits } from '../src/versions/broker-versions.js'
import { dataFolderOf, processesOf } from './running-processes.js'

/** Where a version cannot be had, as without a network, the test says why. */
async function reasonWithout(kind: 'rabbitmq' | 'redis', version: string): Promise<string | undefined> {
  return await obtainService(kind, version).then(
    () => undefined,
    (error: Error) => error.message,
  )
}

const withoutRedis = await reasonWithout('redis', '8.0')
const withoutRabbitmq = await reasonWithout('rabbitmq', '4.0')

describe('a broker by version', () => {
  it.skipIf(withoutRedis)(`is the Redis that was asked for (${withoutRedis ?? 'it is here'})`, async () => {
    const service = await startRedis({ version: '8' })
    onTestFinished(() => service.stop())
    const client = new Redis(service.url)
    onTestFinished(() => client.disconnect())
    expect(await client.info('server')).toMatch(/^redis_version:8\.0\./m)
  })

  it.skipIf(withoutRabbitmq)(
    `is the RabbitMQ that was asked for, with processes and rabbitmqctl of its own (${withoutRabbitmq ?? 'it is here'})`,
    async () => {
      const service = await startRabbitmq({ version: '4.0' })
      onTestFinished(() => service.stop())
      expect(await service.ctl('version')).toMatch(/^4\.0\./)
      if (service.source === 'container') return
      // Names that the system's own programs would have; tests and people look for them.
      const names = processesOf(dataFolderOf('rabbitmq')).map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['beam.smp', 'epmd']))
    },
  )

  it('that does not exist is refused with those that do', async () => {
    await expect(startRedis({ version: '1.0' })).rejects.toThrow(
      'there is no version 1.0 of redis: ask for 8.0, valkey-8.1, system',
    )
  })

  it('that cannot be had is refused with what is missing', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'webmq-no-programs-'))
    vi.stubEnv('PATH', folder)
    vi.stubEnv('XDG_CACHE_HOME', folder)
    vi.stubEnv('DOCKER_HOST', `unix://${path.join(folder, 'docker.sock')}`)
    onTestFinished(() => {
      vi.unstubAllEnvs()
      rmSync(folder, { recursive: true })
    })
    await expect(obtainService('redis', 'valkey-8')).rejects.toThrow('packages of Debian need apt-get on PATH')
  })
})

it('a version is asked for in whole or in part', () => {
  expect(['4', '4.0', '4.0.5'].map((asked) => fits('4.0.5', asked))).toEqual([true, true, true])
  expect(['', '4.', '4.00', '40', '4.0.50', 'valkey-4'].some((asked) => fits('4.0.5', asked))).toBe(false)
  expect(fits('valkey-8.1.1', 'valkey-8')).toBe(true)
})
