import { afterEach, expect, it, vi } from 'vitest'
import { judgeSystems } from './series.js'
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
  const said: string[] = []
  const settings = { count: 1, seed: 1, lengthMs: 100, theme: '', parallelCount: 1, keepsAll: false, folder: '' }
  await judgeSystems(['sockudo', 'anycable'], { ...settings, say: (text) => said.push(text) })
  expect(said.slice(0, 2)).toEqual([
    expect.stringContaining('sockudo cannot be had here: @sockudo/client was not on npm'),
    expect.stringContaining('anycable cannot be had here'),
  ])
})
