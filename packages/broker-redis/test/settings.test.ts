import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { freePort, startRedis } from 'webmq-services'
import { readRedisSettings } from '../src/settings.js'

const NAMES = ['appendfsync', 'maxmemory-policy', 'aof_last_write_status', 'no-such-setting']

it('tells what a server runs with', async () => {
  const service = await startRedis({ isPrivate: true, args: ['--appendfsync', 'always'] })
  const owner = new Redis(service.url)
  onTestFinished(async () => {
    owner.disconnect()
    await service.stop()
  })
  await owner.config('SET', 'requirepass', 'a b@c')
  const url = new URL(service.url)
  url.password = encodeURIComponent('a b@c')
  expect(await readRedisSettings(url.href, NAMES, 5_000)).toEqual({
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
    aof_last_write_status: 'ok',
  })
  url.password = 'wrong'
  await expect(readRedisSettings(url.href, NAMES, 5_000)).rejects.toThrow(/WRONGPASS|NOAUTH/)
})

it('says why there is no answer', async () => {
  const timerCount = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const url = `redis://127.0.0.1:${await freePort()}`
  const before = timerCount()
  await expect(readRedisSettings(url, NAMES, 5_000)).rejects.toThrow('ECONNREFUSED')
  // Symptom: `doctor` ended with "something keeps the process running". Cause: a timer of ioredis.
  await setTimeout(50)
  expect(timerCount()).toBeLessThanOrEqual(before)
})
