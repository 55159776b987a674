import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WebMQApi } from '../src/doors/http/client/webmq-api.js'
import { API_KEY, ApiServer, SECRET, tokenOf } from './api-server.js'
import { ProtocolClient } from './protocol-client.js'

let server: ApiServer
let api: WebMQApi

beforeAll(async () => {
  server = await ApiServer.start({ jwt: { secret: SECRET } })
  api = new WebMQApi({ url: `${server.url}/`, key: API_KEY })
})

afterAll(async () => {
  await server.server.stop({ drainMs: 0 })
})

it('publishes and reads JSON and bytes', async () => {
  expect(await api.publish('a', { text: 'hello' })).toMatchObject({ duplicate: false })
  await api.publish('a', new Uint8Array([1, 255]), { id: 'bytes' })
  expect(await api.publish('a', new Uint8Array([1, 255]), { id: 'bytes' })).toMatchObject({ duplicate: true })
  const results = await api.publishBatch([
    { key: 'a', payload: null },
    { key: 'a', payload: new Uint8Array([7]) },
  ])
  expect(results.map(({ duplicate }) => duplicate)).toEqual([false, false])
  const { messages, hasMore } = await api.history('a', { last: 10 })
  expect(messages.map(({ payload }) => payload)).toEqual([
    { text: 'hello' },
    new Uint8Array([1, 255]),
    null,
    new Uint8Array([7]),
  ])
  expect(hasMore).toBe(false)
  await expect(api.publish('a', new Map())).rejects.toMatchObject({ code: 'E_PAYLOAD_INVALID' })
})

it('operates the server', async () => {
  const client = await ProtocolClient.open(server.webSocketUrl, {
    headers: { authorization: `Bearer ${await tokenOf('ann')}` },
  })
  await client.request((id) => ({ verb: 'listen', id, pattern: 'chat.#' }))
  const { node, connections, missing } = await api.connections({ node: 'all', user: 'ann' })
  expect(connections).toMatchObject([{ user: 'ann', address: '127.0.0.1', listenCount: 1, listens: ['chat.#'] }])
  expect(connections[0]?.node).toBe(node)
  expect(missing).toEqual([])
  const sessions = [client.received('welcome')[0]?.session]
  expect(await api.user('ann')).toEqual({ nodes: [{ node, connections: 1, sessions }], missing: [] })
  expect((await api.info()).nodes).toMatchObject([{ connections: 1, status: 'ok', brokerStatus: 'up' }])
  expect(await api.disconnect({ user: 'ann' })).toMatchObject({ disconnected: 1 })
  await client.until(() => client.closure !== undefined)
  expect(await api.revoke({ tokenId: 'x', until: 4_102_444_800 })).toEqual({ isKept: true })
  expect(await api.presence('a')).toEqual([])
})

it('throws the codes of the server', async () => {
  await expect(api.history('a b')).rejects.toMatchObject({ name: 'WebMQError', code: 'E_KEY_INVALID' })
  const stranger = new WebMQApi({ url: server.url, key: await tokenOf('bob', ['chat.#']) })
  await expect(stranger.publish('other', 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN', retryable: false })
  await expect(stranger.info()).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
  expect(() => new WebMQApi({ url: 'ws://localhost' })).toThrow('url')
  expect(() => new WebMQApi({ url: 'http://localhost/ws' })).toThrow('leave out /ws')
})

describe('a server that fails', () => {
  const ids: unknown[] = []
  let answers: (readonly [status: number, body?: string])[] = []
  const failing = createServer((request, response) => {
    ids.push(request.headers['idempotency-key'])
    request.resume()
    const [status, body = ''] = answers.shift() ?? [200, '{"duplicate":false}']
    if (status === 0) request.socket.destroy()
    else response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  beforeAll(() => new Promise<void>((resolve) => void failing.listen(0, '127.0.0.1', resolve)))
  afterEach(() => {
    ids.length = 0
  })
  afterAll(() => void failing.close())
  const create = (retryCount: number) =>
    new WebMQApi({ url: `http://127.0.0.1:${(failing.address() as AddressInfo).port}`, retryCount })

  it('is asked again, with the same id', async () => {
    answers = [[503], [0]]
    expect(await create(2).publish('a', 1)).toEqual({ duplicate: false })
    expect(ids).toHaveLength(3)
    expect(new Set(ids).size).toBe(1)
  })

  it('is asked no more often than allowed', async () => {
    answers = [[503], [503], [503]]
    await expect(create(1).publish('a', 1)).rejects.toMatchObject({ code: 'E_CONNECT_FAILED', retryable: true })
    expect(ids).toHaveLength(2)
  })

  // A publish failed for good when a proxy answered 404, as while a service is deployed. Its status was taken for the
  // server's, which says what is wrong in a body of its own.
  it.each([
    [404, '404 page not found'],
    [403, '<html></html>'],
    [401, '{"message":"no"}'],
    [404, '{"code":"E_ROUTE_NOT_FOUND","message":"Cannot POST /api/publish"}'],
    [200, '<html>log in</html>'],
  ])('is asked again after the answer of a proxy: %i %s', async (...answer) => {
    answers = [answer, answer]
    expect(await create(2).publish('a', 1)).toEqual({ duplicate: false })
    expect(ids).toHaveLength(3)
  })

  it('is not asked again after a refusal, though it is newer than its client', async () => {
    answers = [[403, '{"code":"E_FORBIDDEN","message":"m","docs":"d"}']]
    await expect(create(3).publish('a', 1)).rejects.toMatchObject({ code: 'E_FORBIDDEN' })
    answers = [[409, '{"code":"E_OF_TOMORROW","message":"m","docs":"d"}']]
    await expect(create(3).publish('a', 1)).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    expect(ids).toHaveLength(2)
  })
})
