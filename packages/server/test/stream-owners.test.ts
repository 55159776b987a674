import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { WriteKind } from 'webmq-client/protocol'
import type { ServerOptions } from '../src/index.js'
import { API_KEY, ApiServer, SECRET, tokenOf } from './api-server.js'
import { ProtocolClient } from './protocol-client.js'

// Whoever might publish to a key could append to the stream of another user, whose own text was then answered `ok duplicate` and
// lost. A number was compared with the last one, and nothing else.

const KEY = 'chat.7'

async function start(options: ServerOptions = { jwt: { secret: SECRET } }): Promise<ApiServer> {
  const api = await ApiServer.start({ history: ['#=10000'], ...options })
  onTestFinished(() => api.server.stop({ drainMs: 0 }))
  return api
}

/** Writes a message of the stream. Resolves to `ok`, `duplicate`, or the code of the error. */
type Write = (sequence: number, kind: WriteKind, payload?: string) => Promise<string>

async function overWebSocket(api: ApiServer, user: string | undefined, of: string): Promise<Write> {
  const headers = user === undefined ? {} : { authorization: `Bearer ${await tokenOf(user)}` }
  const client = await ProtocolClient.open(api.webSocketUrl, { headers })
  onTestFinished(() => client.close())
  return async (sequence, kind, payload = '') => {
    const message = { verb: 'stream', key: KEY, stream: of, sequence, kind, payload } as const
    const answer = await client.request((id) => ({ ...message, id }))
    if (answer.verb === 'error') return answer.code
    return answer.duplicate === true ? 'duplicate' : 'ok'
  }
}

async function overHttp(api: ApiServer, user: string | undefined, of: string): Promise<Write> {
  const bearer = user === 'application' ? API_KEY : user && (await tokenOf(user))
  return async (sequence, kind, payload) => {
    const body = { key: KEY, stream: of, sequence, kind, ...(payload && { payload: JSON.parse(payload) }) }
    const { json } = await api.ask('/api/streams', { body, bearer: bearer ?? '' })
    return json.code === undefined ? (json.duplicate === true ? 'duplicate' : 'ok') : String(json.code)
  }
}

const DOORS = { WebSocket: overWebSocket, HTTP: overHttp }
const WRITERS = [
  ['alice', 'WebSocket'],
  ['alice', 'HTTP'],
  ['bob', 'WebSocket'],
  ['bob', 'HTTP'],
  ['application', 'HTTP'],
] as const

describe.each([
  ['alice', 'WebSocket'],
  ['alice', 'HTTP'],
  ['application', 'HTTP'],
] as const)('a stream of %s over %s', (owner, ownerDoor) => {
  it.each(WRITERS)('is written by its owner alone: %s over %s', async (user, door) => {
    const api = await start()
    const own = await DOORS[ownerDoor](api, owner, 'S')
    expect(await own(0, 'start', '1')).toBe('ok')
    expect(await own(1, 'append', '"one "')).toBe('ok')
    const write = await DOORS[door](api, user, 'S')
    const isOwn = user === owner
    expect(await write(2, 'append', '"two "')).toBe(isOwn ? 'ok' : 'E_FORBIDDEN')
    expect(await write(1, 'append', '"one "')).toBe(isOwn ? 'duplicate' : 'E_FORBIDDEN')
    expect(await write(2, 'beat')).toBe(isOwn ? 'ok' : 'E_FORBIDDEN')
    expect(await write(0, 'start', '1')).toBe(isOwn ? 'duplicate' : 'E_STREAM_BUSY')
    if (!isOwn) {
      for (const kind of ['end', 'fail'] as const) expect(await write(2, kind)).toBe('E_FORBIDDEN')
      // The application may end what others write.
      if (user !== 'application') expect(await write(2, 'stop')).toBe('E_FORBIDDEN')
      expect(await own(2, 'append', '"two "')).toBe('ok')
    }
    expect(await api.server.readStream(KEY)).toMatchObject({ text: 'one two ', isCut: false, status: 'active' })
    // Whoever may listen reads it.
    const bearer = user === 'application' ? API_KEY : await tokenOf(user)
    expect((await api.ask(`/api/streams?key=${KEY}`, { bearer })).json).toMatchObject({ text: 'one two ', stream: 'S' })
    const isStopped = user === 'application' && !isOwn
    if (isStopped) expect(await write(3, 'stop')).toBe('ok')
    expect(await own(3, 'end', '7')).toBe(isStopped ? 'E_STREAM_ENDED' : 'ok')
    expect(await write(3, 'end', '7')).toBe(isOwn ? 'duplicate' : 'E_FORBIDDEN')
    expect(await api.server.readStream(KEY)).toMatchObject({ status: isStopped ? 'stop' : 'end' })
  })

  it('is refused to the process and to Durable Streams while it goes on, and is stopped by whoever may publish', async () => {
    const api = await start()
    const own = await DOORS[ownerDoor](api, owner, 'S')
    expect(await own(0, 'start', '1')).toBe('ok')
    await expect(api.server.stream(KEY)).rejects.toMatchObject({ code: 'E_STREAM_BUSY' })
    const bob = { bearer: await tokenOf('bob'), headers: { 'content-type': 'text/plain' } }
    const statusOf = async (method: string, body?: string) =>
      (await api.ask(`/streams/${KEY}`, { ...bob, method, ...(body && { body }) })).status
    expect([await statusOf('PUT'), await statusOf('POST', 'x'), await statusOf('DELETE')]).toEqual([409, 405, 405])
    expect(
      (await fetch(`${api.url}/streams/${KEY}`, { headers: { authorization: `Bearer ${bob.bearer}` } })).status,
    ).toBe(200)
    if (ownerDoor === 'WebSocket') return
    const headers = { authorization: `Bearer ${bob.bearer}` }
    const client = await ProtocolClient.open(api.webSocketUrl, { headers })
    onTestFinished(() => client.close())
    client.send({ verb: 'request', id: 'q', key: KEY, payload: '{"type":"stop"}' })
    await client.until(() => client.received('reply').length === 1)
    expect(await api.server.readStream(KEY)).toMatchObject({ status: 'stop' })
  })
})

it('is that of all anonymous clients, if one of them has begun it', async () => {
  const api = await start({ insecure: true })
  const [first, second] = [await overWebSocket(api, undefined, 'S'), await overHttp(api, undefined, 'S')]
  expect(await first(0, 'start')).toBe('ok')
  expect(await second(1, 'append', '"text"')).toBe('ok')
  expect(await (await overHttp(api, 'application', 'S'))(2, 'append', '"!"')).toBe('E_FORBIDDEN')
  expect(await first(2, 'end')).toBe('ok')
})

it('keeps its owner in what the log has as one message, and in appends whose start it has forgotten', async () => {
  const api = await start({ jwt: { secret: SECRET }, history: ['#=10000'], historyMaxMessages: 3 })
  const [alice, bob] = [await overWebSocket(api, 'alice', 'S'), await overWebSocket(api, 'bob', 'S')]
  expect(await alice(0, 'start')).toBe('ok')
  for (let sequence = 1; sequence < 6; sequence++) expect(await alice(sequence, 'append', '"x"')).toBe('ok')
  expect(await bob(6, 'append', '"y"')).toBe('E_FORBIDDEN')
  expect(await alice(6, 'end', '7')).toBe('ok')
  await vi.waitFor(async () => expect((await api.server.history(KEY)).messages.length).toBeLessThan(4))
  expect(await bob(6, 'end', '7')).toBe('E_FORBIDDEN')
  expect(await alice(6, 'end', '8')).toBe('E_STREAM_SEQUENCE')
  expect(await alice(6, 'end', '7')).toBe('duplicate')
})

it('tells a message that is sent again from another one with its number, whatever a hook has made of it', async () => {
  const api = await start({
    jwt: { secret: SECRET },
    hooks: { publish: (request) => (request.payload.length > 0 ? { payload: `${request.json()}!` } : undefined) },
  })
  const [alice, again] = [await overWebSocket(api, 'alice', 'S'), await overHttp(api, 'alice', 'S')]
  expect(await alice(0, 'start')).toBe('ok')
  expect(await alice(1, 'append', '"one"')).toBe('ok')
  expect(await alice(2, 'append', '"two"')).toBe('ok')
  for (const write of [alice, again]) {
    expect(await write(2, 'append', '"two"')).toBe('duplicate')
    expect(await write(1, 'append', '"one"')).toBe('duplicate')
    expect(await write(2, 'append', '"TWO"')).toBe('E_STREAM_SEQUENCE')
    expect(await write(1, 'append', '"two"')).toBe('E_STREAM_SEQUENCE')
    expect(await write(2, 'end', '"two"')).toBe('E_STREAM_SEQUENCE')
    expect(await write(0, 'start', '1')).toBe('E_STREAM_SEQUENCE')
  }
  expect(await api.server.readStream(KEY)).toMatchObject({ text: 'one!two!' })
})

it('never tells readers whose it is', async () => {
  const api = await start({ jwt: { secret: SECRET } })
  const reader = await ProtocolClient.open(api.webSocketUrl, {
    headers: { authorization: `Bearer ${await tokenOf('bob')}` },
  })
  onTestFinished(() => reader.close())
  const frames: string[] = []
  reader.socket.on('message', (data) => frames.push(String(data)))
  expect((await reader.request((id) => ({ verb: 'listen', id, pattern: KEY }))).verb).toBe('ok')
  const alice = await overWebSocket(api, 'alice', 'S')
  await alice(0, 'start')
  await alice(1, 'append', '"x"')
  await alice(2, 'end')
  await reader.until(() => reader.received('message').length === 3)
  await reader.request((id) => ({ verb: 'read', id, key: KEY }))
  await vi.waitFor(async () => expect((await api.server.history(KEY)).messages).toHaveLength(1))
  await reader.request((id) => ({ verb: 'history', id, key: KEY, last: 10 }))
  await reader.settled()
  const shown = frames.join('\n') + JSON.stringify((await api.ask(`/api/history?key=${KEY}`)).json)
  expect(shown).not.toMatch(/owner|checksum|user:/)
})
