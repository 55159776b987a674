import { afterEach, describe, expect, it, vi } from 'vitest'
import { encodeContent, encodePart, NODE_FORMAT } from '../src/nodes/node-message.js'
import type { ServerOptions } from '../src/options/server-options.js'
import { ApiServer, SECRET, tokenOf } from './api-server.js'
import { BrokerHub, type HubBroker } from './broker-hub.js'
import { recordingLogger } from './fake-server.js'
import { ProtocolClient } from './protocol-client.js'
import { SseReader } from './sse-reader.js'

const IN_AN_HOUR = Math.floor(Date.now() / 1_000) + 3_600

let hub = new BrokerHub()
let nodes: ApiServer[] = []
let brokers: HubBroker[] = []

async function start(options: ServerOptions = {}): Promise<ApiServer> {
  const broker = hub.createBroker()
  const node = await ApiServer.start({ jwt: { secret: SECRET }, broker, ...options })
  nodes.push(node)
  brokers.push(broker)
  return node
}

const connect = (node: ApiServer, token: string) =>
  ProtocolClient.open(node.webSocketUrl, { headers: { authorization: `Bearer ${token}` } })

const revocationCounts = () => nodes.map(({ server }) => server.stats().cluster.revocationCount)

const codeOf = async (node: ApiServer, token: string) =>
  (await node.ask('/api/presence?key=a', { bearer: token })).json.code

afterEach(async () => {
  await Promise.all(nodes.map(({ server }) => server.stop({ drainMs: 0 })))
  nodes = []
  brokers = []
  hub = new BrokerHub()
})

describe('a revocation', () => {
  it('ends the connections with the token on every node, and refuses new ones', async () => {
    const [one, other] = [await start(), await start()]
    const [stolen, good] = [
      await tokenOf('ann', ['#'], { jti: 'stolen' }),
      await tokenOf('ann', ['#'], { jti: 'good' }),
    ]
    const clients = [await connect(one, stolen), await connect(other, stolen), await connect(other, good)]
    const answer = await one.ask('/api/revoke', { body: { tokenId: 'stolen', until: IN_AN_HOUR } })
    expect(answer).toMatchObject({ status: 200, json: { isKept: true } })
    await vi.waitFor(() => expect(clients.slice(0, 2).map(({ closure }) => closure?.code)).toEqual([4502, 4502]))
    expect(clients[2]?.closure).toBeUndefined()
    for (const node of nodes) {
      expect(await codeOf(node, stolen)).toBe('E_TOKEN_REVOKED')
      const refused = await connect(node, stolen)
      await vi.waitFor(() => expect(refused.closure?.code).toBe(4502))
      expect(refused.received('error')).toMatchObject([{ code: 'E_TOKEN_REVOKED', retryable: false }])
      // It was 200 and an event, as on a WebSocket, whose upgrade tells pages nothing.
      const stream = new SseReader(node.port, 'listen=a', { authorization: `Bearer ${stolen}` })
      expect((await stream.client.response()).statusCode).toBe(401)
      expect(await stream.refusal()).toMatchObject({ code: 'E_TOKEN_REVOKED' })
    }
    expect(await codeOf(other, good)).toBeUndefined()
  })

  it('of a user covers the tokens that were issued before, and no later one', async () => {
    const node = await start()
    const nowS = Math.floor(Date.now() / 1_000)
    const [old, later] = [
      await tokenOf('ann', ['#'], { iat: nowS - 60 }),
      await tokenOf('ann', ['#'], { iat: nowS + 60 }),
    ]
    const other = await tokenOf('bob')
    await node.ask('/api/revoke', { body: { user: 'ann', until: IN_AN_HOUR } })
    expect(await Promise.all([old, later, other].map((token) => codeOf(node, token)))).toEqual([
      'E_TOKEN_REVOKED',
      undefined,
      undefined,
    ])
  })

  it('refuses a renewal on an open connection', async () => {
    const node = await start()
    const client = await connect(node, await tokenOf('ann', ['#'], { jti: 'first' }))
    await node.ask('/api/revoke', { body: { tokenId: 'second', until: IN_AN_HOUR } })
    const token = await tokenOf('ann', ['#'], { jti: 'second' })
    expect(await client.request((id) => ({ verb: 'auth', id, token }))).toMatchObject({ code: 'E_TOKEN_REVOKED' })
    await vi.waitFor(() => expect(client.closure?.code).toBe(4502))
  })

  it('is kept no longer than the token lives', async () => {
    const node = await start()
    const answer = await node.ask('/api/revoke', { body: { tokenId: 'old', until: 1 } })
    expect(answer.json).toEqual({ isKept: false })
    expect(revocationCounts()).toEqual([0])
  })

  it('is learned by a node that starts later, in parts', async () => {
    const one = await start({ maxPayloadBytes: 2_048, maxOutboxBytes: 65_536 })
    for (let index = 0; index < 100; index++) {
      await one.ask('/api/revoke', { body: { tokenId: `token-${index}-${'x'.repeat(60)}`, until: IN_AN_HOUR } })
    }
    await start()
    await vi.waitFor(() => expect(revocationCounts()).toEqual([100, 100]))
  })

  it('spreads after an outage, in both directions', async () => {
    const [one, other] = [await start(), await start()]
    brokers[0]?.cut()
    const revoke = (node: ApiServer, tokenId: string) =>
      node.ask('/api/revoke', { body: { tokenId, until: IN_AN_HOUR } })
    expect(await revoke(one, 'a')).toMatchObject({ status: 503, json: { code: 'E_BROKER_UNAVAILABLE' } })
    expect(await revoke(other, 'b')).toMatchObject({ status: 200 })
    expect(revocationCounts()).toEqual([1, 1])
    brokers[0]?.mend()
    await vi.waitFor(() => expect(revocationCounts()).toEqual([2, 2]))
  })
})

describe('a disconnect', () => {
  it('ends the connections of a user on every node, and no others', async () => {
    const [one, other] = [await start(), await start()]
    const [ann, bob] = [await tokenOf('ann'), await tokenOf('bob')]
    const clients = [await connect(one, ann), await connect(other, ann), await connect(other, bob)]
    const answer = await one.ask('/api/disconnect', { body: { user: 'ann' } })
    expect(answer).toMatchObject({ status: 200, json: { disconnected: 1 } })
    await vi.waitFor(() => expect(clients.slice(0, 2).map(({ closure }) => closure?.code)).toEqual([4503, 4503]))
    expect(clients[2]?.closure).toBeUndefined()
  })

  it('ends one session, or all of an address, with the code that clients come back after', async () => {
    const node = await start()
    const clients = [await connect(node, await tokenOf('ann')), await connect(node, await tokenOf('bob'))]
    const { json } = await node.ask('/api/connections?user=ann')
    const [{ session }] = json.connections as [{ session: string }]
    await node.ask('/api/disconnect', { body: { session, code: 'E_TOKEN_EXPIRED' } })
    await vi.waitFor(() => expect(clients.map(({ closure }) => closure?.code)).toEqual([4009, undefined]))
    await node.ask('/api/disconnect', { body: { address: '127.0.0.1', code: 'E_DRAIN' } })
    await vi.waitFor(() => expect(clients.map(({ closure }) => closure?.code)).toEqual([4009, 4001]))
  })

  it.each([
    ['nobody', {}],
    ['two at once', { user: 'ann', session: 'b' }],
    ['a code that is not for it', { user: 'ann', code: 'E_SLOW_CONSUMER' }],
  ])('of %s is refused', async (_, body) => {
    const node = await start()
    expect(await node.ask('/api/disconnect', { body })).toMatchObject({
      status: 400,
      json: { code: 'E_REQUEST_INVALID' },
    })
  })
})

describe('GET /api/info', () => {
  it('describes all nodes that are there', async () => {
    const [one, other] = [await start(), await start()]
    await connect(other, await tokenOf('ann'))
    const connectionsOf = async () =>
      ((await one.ask('/api/info')).json.nodes as { connections: number }[]).map(({ connections }) => connections)
    await vi.waitFor(async () => expect(await connectionsOf()).toEqual([0, 1]))
    await other.server.stop({ drainMs: 0 })
    nodes.pop()
    await vi.waitFor(async () => expect(await connectionsOf()).toEqual([0]))
  })
})

describe('GET /api/user', () => {
  // Symptom: behind a balancer nobody could tell at which node a user is. Cause: each node listed its own connections alone.
  it('says at which nodes a user is, however many ask at once', async () => {
    const [one, other, third] = [await start(), await start(), await start()]
    const ann = [await connect(one, await tokenOf('ann')), await connect(other, await tokenOf('ann'))]
    await connect(third, await tokenOf('bob'))
    const placesOf = async (user: string) => {
      const { json } = await one.ask(`/api/user?user=${user}`)
      const found = json.nodes as { node: string; connections: number; sessions: string[] }[]
      return {
        silent: json.silentCount,
        found: found.flatMap(({ sessions }) => sessions).toSorted(),
        count: found.length,
      }
    }
    const sessions = ann.map((client) => client.received('welcome')[0]?.session).toSorted()
    await vi.waitFor(async () => expect(await placesOf('ann')).toEqual({ silent: 0, found: sessions, count: 2 }))
    const all = await Promise.all(['ann', 'bob', 'ann', 'nobody'].map(placesOf))
    expect(all.map(({ silent, count }) => [silent, count])).toEqual([
      [0, 2],
      [0, 1],
      [0, 2],
      [0, 0],
    ])
  })
})

describe('messages of other nodes', () => {
  const publish = (topic: string, payload: Buffer) =>
    brokers[0]?.publish({ key: `$webmq.nodes.${topic}`, payload, isBinary: true })
  const user = '{"entries":[["u","\\u0000",9,9]]}'
  const code = '{"target":{"by":"user","value":"a"},"code":"E_X"}'

  it.each([
    ['no part', Buffer.from('x')],
    ['a sender that cannot be part of a key', encodePart('a b', encodeContent('nodes', 'bye', '{}'), false)],
    ['no JSON', encodePart('a', encodeContent('nodes', 'lease', '{"marks":'), false)],
    ['a list', encodePart('a', encodeContent('nodes', 'lease', '[]'), false)],
    ['a lease without a time', encodePart('a', encodeContent('nodes', 'lease', '{"marks":{}}'), false)],
    ['an unknown kind', encodePart('a', encodeContent('nodes', 'constructor', '{}'), false)],
    ['a user that no token can have', encodePart('a', encodeContent('revocations', 'changes', user), false)],
    ['a foreign code', encodePart('a', encodeContent('operators', 'disconnect', code), false)],
  ])('are counted and ignored: %s', async (_, payload) => {
    const node = await start()
    await publish('nodes', payload)
    await vi.waitFor(() => expect(node.server.stats().cluster.droppedCount).toBe(1))
  })

  it('are counted, and told to the operator once, when they have another format', async () => {
    const { logger, lines } = recordingLogger()
    const node = await start({ logger })
    for (let count = 0; count < 3; count++) {
      const payload = encodePart('a', Buffer.from('whatever'), false)
      payload[0] = NODE_FORMAT + 1
      await publish('nodes', payload)
    }
    await vi.waitFor(() => expect(node.server.stats().cluster.droppedCount).toBe(3))
    const warnings = lines.filter(({ level }) => level === 'warn')
    expect(warnings).toMatchObject([{ fields: { peer: 'a', format: NODE_FORMAT + 1 } }])
  })

  it('tell the operator when a node has other options', async () => {
    const { logger, lines } = recordingLogger()
    await start()
    await start({ dedupeWindowMs: 1_000, logger })
    const warnings = () => lines.filter(({ level }) => level === 'warn')
    await vi.waitFor(() => expect(warnings()).toMatchObject([{ fields: { hasOtherOptions: true } }]))
  })
})
