import { afterEach, expect, it, vi } from 'vitest'
import { judgeTarget } from './series.js'
import { signed } from './sockudo.js'

afterEach(() => vi.unstubAllEnvs())

// https://pusher.com/docs/channels/library_auth_reference/rest-api/#worked-authentication-example
it('proves a publish to Sockudo as the example of Pusher does', () => {
  const app = { key: '278d425bdf160c739803', secret: '7ad3773142a6692b25b8' }
  const body = { name: 'foo', channels: ['project-3'], data: '{"some":"data"}' }
  expect(signed(app, '/apps/3/events', body, 1_353_088_179)).toBe(
    'auth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0' +
      '&body_md5=ec365a775a4cd0599faeb73354201b6f' +
      '&auth_signature=da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c',
  )
})

it('says of a system that cannot be had why, and plays nothing', async () => {
  vi.stubEnv('WEBMQ_SOCKUDO_CLIENT', undefined)
  const say = vi.fn()
  const drawn = { count: 1, seed: 1, lengthMs: 100, theme: '', parallelCount: 1, shrinkMs: 0 }
  const judged = (target: string) => judgeTarget({ target, urls: [], say, ...drawn })
  await expect(judged('sockudo')).rejects.toThrow('sockudo cannot be had here: @sockudo/client was not on npm')
  await expect(judged('anycable')).rejects.toThrow('anycable cannot be had here')
  await expect(judged('./adapter')).rejects.toThrow('--target <command> needs --url')
  expect(say).not.toHaveBeenCalled()
})
