import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { API_KEY, ApiServer, SECRET, tokenOf } from './api-server.js'

const MIB = 1024 ** 2
const EVE = '203.0.113.9'
/** As many as an address may have. */
const REQUESTS = 64

async function startHostile() {
  const api = await ApiServer.start({ jwt: { secret: SECRET }, trustedProxies: ['127.0.0.1'], adminPort: 0 })
  const sockets: Socket[] = []
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await api.server.stop({ drainMs: 0 })
  })
  const token = await tokenOf('eve')
  /** Begins a request whose body lacks its last byte. */
  const begin = async (path: string, byteCount: number, address = EVE) => {
    const socket = connect(api.port, '127.0.0.1').on('error', () => undefined)
    sockets.push(socket)
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${token}`,
      `X-Forwarded-For: ${address}`,
      `Content-Type: ${path.startsWith('/streams') ? 'text/plain' : 'application/json'}`,
      `Content-Length: ${byteCount}`,
    ]
    socket.write([...head, '', ' '.repeat(byteCount - 1)].join('\r\n'))
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(socket, 'drain')
    return () => /^HTTP\/1.1 (\d+)/.exec(answer)?.[1]
  }
  const operate = async (path: string, body: unknown) => {
    const response = await fetch(`http://127.0.0.1:${api.server.adminAddress?.port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return response.status
  }
  return { api, begin, operate }
}

// Symptom: 64 batches of one client that lacked a byte refused each publish of others, and operators could not revoke its token.
it.each(['/api/publish/batch', '/streams/evil'])(
  'a client whose bodies at %s never end refuses nobody else',
  async (path) => {
    const { api, begin, operate } = await startHostile()
    const byteCount = path.startsWith('/streams') ? 256 * 1024 : MIB
    if (path.startsWith('/streams')) {
      const created = { method: 'PUT', headers: { 'content-type': 'text/plain' }, bearer: await tokenOf('eve') }
      expect(await api.ask(path, created)).toMatchObject({ status: 201 })
    }
    const begun = await Promise.all(Array.from({ length: REQUESTS }, () => begin(path, byteCount)))
    await expect.poll(() => begun.filter((status) => status() === '429').length).toBeGreaterThanOrEqual(10)
    const body = { key: 'a', payload: 'x'.repeat(100_000) }
    const alice = { body, bearer: await tokenOf('alice'), headers: { 'x-forwarded-for': '198.51.100.2' } }
    expect(await api.ask('/api/publish', alice)).toMatchObject({ status: 200 })
    expect(await api.ask('/api/publish/batch', { body: { messages: [body] } })).toMatchObject({ status: 200 })
    expect(await operate('/api/disconnect', { user: 'eve' })).toBe(200)
    expect(await operate('/api/revoke', { user: 'eve', until: 4_102_444_800 })).toBe(200)
    expect(begun.every((status) => status() === undefined || status() === '429')).toBe(true)
  },
)
