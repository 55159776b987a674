import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { encodeContent, encodePart, NODE_FORMAT } from '../src/features/nodes/node-message.js'
import { EventLoopLag } from '../src/features/observing/measuring/event-loop-lag.js'
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
    const old = await tokenOf('ann', ['#'], { iat: nowS - 60 })
    const other = await tokenOf('bob')
    await node.ask('/api/revoke', { body: { user: 'ann', until: IN_AN_HOUR } })
    expect(await Promise.all([old, other].map((token) => codeOf(node, token)))).toEqual(['E_TOKEN_REVOKED', undefined])
    // Tokens count by their second.
    await expect.poll(async () => codeOf(node, await tokenOf('ann'))).toBeUndefined()
    expect(await codeOf(node, old)).toBe('E_TOKEN_REVOKED')
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

  it('tells the load of each node, how its broker answers, and how often it refused', async () => {
    const [one, other] = [await start(), await start()]
    const ann = await connect(other, await tokenOf('ann'))
    type Row = Readonly<Record<string, number>>
    const rowOfOther = async () => {
      const { nodes: rows } = (await one.ask('/api/info')).json as { nodes: [Row, Row?] }
      expect(rows).toHaveLength(2)
      return rows[1] as Row
    }
    const before = await vi.waitFor(rowOfOther)
    expect(before).toMatchObject({ recovered: 0, gaps: 0, slowConsumers: 0, differentPeers: 0 })
    expect(before.memoryBytes).toBeGreaterThan(1024 ** 2)
    expect(before).not.toHaveProperty('brokerMs')
    // Over less than a second, a rate says little.
    await vi.waitFor(
      async () => {
        for (const key of ['a.b', '$webmq.nobody.may']) {
          ann.send({ verb: 'publish', key, payload: '1', echo: true })
        }
        const now = await rowOfOther()
        expect(now.cpu).toBeGreaterThan(0)
        expect(now.eventLoopDelayMs).toBeGreaterThanOrEqual(0)
        expect(now.brokerMs).toBeGreaterThanOrEqual(0)
        expect(now.refused).toBeGreaterThan(before.refused ?? 0)
      },
      { timeout: 10_000, interval: 300 },
    )
    // Symptom: an application that starts and stops servers kept a watch, and its timer, for each of them.
    const stopped = vi.spyOn(EventLoopLag.prototype, 'stop')
    await other.server.stop({ drainMs: 0 })
    expect(stopped).toHaveBeenCalledOnce()
    stopped.mockRestore()
    nodes.pop()
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
        missing: json.missing,
        found: found.flatMap(({ sessions }) => sessions).toSorted(),
        count: found.length,
      }
    }
    const sessions = ann.map((client) => client.received('welcome')[0]?.session).toSorted()
    await vi.waitFor(async () => expect(await placesOf('ann')).toEqual({ missing: [], found: sessions, count: 2 }))
    const all = await Promise.all(['ann', 'bob', 'ann', 'nobody'].map(placesOf))
    expect(all.map(({ missing, count }) => [missing, count])).toEqual([
      [[], 2],
      [[], 1],
      [[], 2],
      [[], 0],
    ])
  })
})

describe('GET /api/connections', () => {
  interface Row {
    readonly node: string
    readonly session: string
    readonly user: string
    readonly listens: readonly string[]
  }

  interface Page {
    readonly node: string
    readonly connections: readonly Row[]
    readonly missing: readonly string[]
    readonly next?: string
  }

  /** Asks until no others than these are missing: on a busy machine a node may answer too late. */
  const list = async (node: ApiServer, query: string, missing: readonly string[] = []) =>
    await vi.waitFor(async () => {
      const { json } = await node.ask(`/api/connections?${query}`)
      expect(json).toMatchObject({ missing })
      return json as unknown as Page
    })

  /** The names of the nodes, in the order of their start, once all know each other. */
  async function namesOf(): Promise<readonly string[]> {
    await vi.waitFor(() =>
      expect(nodes.map(({ server }) => server.stats().cluster.peerCount)).toEqual(nodes.map(() => nodes.length - 1)),
    )
    return await Promise.all(nodes.map(async (node) => (await list(node, '')).node))
  }

  const connectMany = async (node: ApiServer, user: string, count: number) => {
    const token = await tokenOf(user)
    return await Promise.all(Array.from({ length: count }, () => connect(node, token)))
  }

  const sessionOf = (client: ProtocolClient) => client.received('welcome')[0]?.session

  it('lists those of all nodes in pages, each with its node, whichever node is asked for a page', async () => {
    await Promise.all([start(), start(), start()])
    const names = await namesOf()
    const clients = await Promise.all(nodes.map((node, index) => connectMany(node, `user-${index}`, 3 * (index + 1))))
    const expected = clients.flatMap((some, index) =>
      some.map((client) => `${names[index]} user-${index} ${sessionOf(client)}`),
    )
    await vi.waitFor(async () => expect((await list(nodes[0] as ApiServer, 'node=all')).connections).toHaveLength(18))
    for (const limit of [1, 4, 18]) {
      const rows: Row[] = []
      let query = `node=all&limit=${limit}`
      for (let asked = 0; ; asked++) {
        const page = await list(nodes[asked % 3] as ApiServer, query)
        expect(page.connections.length).toBeLessThanOrEqual(limit)
        rows.push(...page.connections)
        if (page.next === undefined) break
        query = `node=all&limit=${limit}&after=${page.next}`
      }
      expect(rows.map(({ node, user, session }) => `${node} ${user} ${session}`).toSorted()).toEqual(
        expected.toSorted(),
      )
    }
    const { connections } = await list(nodes[0] as ApiServer, 'node=all&user=user-2')
    expect(new Set(connections.map(({ node }) => node))).toEqual(new Set([names[2]]))
    expect(connections).toHaveLength(9)
  })

  it('lists those of one node by its name, and pages on there', async () => {
    const [one, other] = [await start(), await start()]
    const [, name] = await namesOf()
    await connectMany(one, 'bob', 1)
    await connectMany(other, 'ann', 3)
    const first = await list(one, `node=${name}&limit=2`)
    expect(first.connections.map(({ node, user }) => [node, user])).toEqual(Array(2).fill([name, 'ann']))
    const last = await list(one, `limit=2&after=${first.next}`)
    expect(last.connections.map(({ node, user }) => [node, user])).toEqual([[name, 'ann']])
    expect(last.next).toBeUndefined()
    expect((await list(one, '')).connections.map(({ user }) => user)).toEqual(['bob'])
  })

  // Symptom: a count of nodes that did not answer said nothing of which they were.
  it('names the nodes that do not answer', async () => {
    const [one, other] = [await start(), await start(), await start()]
    const [, silent = '', third] = await namesOf()
    await connectMany(other, 'ann', 1)
    await connectMany(nodes[2] as ApiServer, 'ann', 1)
    brokers[1]?.cut()
    const page = await list(one, 'node=all', [silent])
    expect(page.connections.map(({ node }) => node)).toEqual([third])
    expect((await list(one, `node=${silent}`, [silent])).connections).toEqual([])
    expect((await list(one, 'node=nobody', ['nobody'])).connections).toEqual([])
    const told = { nodes: [{ node: page.node }, { node: third }], missing: [silent] }
    await vi.waitFor(async () => expect((await one.ask('/api/info')).json).toMatchObject(told))
    const found = { nodes: [{ node: third, connections: 1 }], missing: [silent] }
    await vi.waitFor(async () => expect((await one.ask('/api/user?user=ann')).json).toMatchObject(found))
  })

  it('has no more rows of another node than a message between nodes may carry', async () => {
    const options = { maxPayloadBytes: 4_096, maxOutboxBytes: 65_536 }
    const [one, other] = [await start(options), await start(options)]
    const [, name = ''] = await namesOf()
    const clients = await connectMany(other, 'ann', 6)
    for (const client of clients) {
      for (let index = 0; index < 10; index++) {
        await client.request((id) => ({ verb: 'listen', id, pattern: `${'x'.repeat(120)}.${index}` }))
      }
    }
    for (const query of ['node=all', `node=${name}`]) {
      const sessions: string[] = []
      for (let end = ''; ; ) {
        const page = await list(one, `${query}${end}`)
        expect(Buffer.byteLength(JSON.stringify(page.connections))).toBeLessThan(4_096 + 256)
        expect(page.connections[0]?.listens).toHaveLength(10)
        sessions.push(...page.connections.map(({ session }) => session))
        if (page.next === undefined) break
        end = `&after=${page.next}`
      }
      expect(sessions.toSorted()).toEqual(clients.map(sessionOf).toSorted())
    }
    expect((await one.ask('/api/user?user=ann')).json.nodes).toMatchObject([{ node: name, connections: 6 }])
  })

  it('is refused while too many requests wait for other nodes', async () => {
    const [one] = [await start(), await start()]
    const [, silent = ''] = await namesOf()
    brokers[1]?.cut()
    const answers = await Promise.all(Array.from({ length: 200 }, () => one.ask('/api/connections?node=all')))
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThan(200)
    for (const { status, json } of refused) expect([status, json.code]).toEqual([429, 'E_RATE_LIMIT'])
    // On a busy machine the silent node has been forgotten by now.
    const later = await one.ask('/api/connections?node=all')
    expect([later.status, [[], [silent]]]).toEqual([200, expect.arrayContaining([later.json.missing])])
  })

  it.each(['after=1', 'after=a:b', 'after=a:-1', `node=${'x'.repeat(37)}`, 'node='])(
    'is refused with %s',
    async (query) => {
      const node = await start()
      expect((await node.ask(`/api/connections?${query}`)).json.code).toBe('E_REQUEST_INVALID')
    },
  )
})

describe('messages of other nodes', () => {
  const publish = (topic: string, payload: Buffer) =>
    brokers[0]?.publish({ key: `$webmq.nodes.${topic}`, payload, isBinary: true })
  const user = '{"entries":[["u","\\u0000",9,9]]}'
  const code = '{"target":{"by":"user","value":"a"},"code":"E_X"}'
  const rows = '{"round":0,"count":1,"rows":[{"connection":1,"session":7}],"hasMore":false}'
  const query = '{"round":0,"query":{"match":{"user":7},"after":-1,"limit":1}}'

  it.each([
    ['no part', Buffer.from('x')],
    ['a sender that cannot be part of a key', encodePart('a b', encodeContent('nodes', 'bye', '{}'), false)],
    ['no JSON', encodePart('a', encodeContent('nodes', 'lease', '{"marks":'), false)],
    ['a list', encodePart('a', encodeContent('nodes', 'lease', '[]'), false)],
    ['a lease without a time', encodePart('a', encodeContent('nodes', 'lease', '{"marks":{}}'), false)],
    ['an unknown kind', encodePart('a', encodeContent('nodes', 'constructor', '{}'), false)],
    ['a user that no token can have', encodePart('a', encodeContent('revocations', 'changes', user), false)],
    ['a foreign code', encodePart('a', encodeContent('operators', 'disconnect', code), false)],
    ['rows that are none', encodePart('a', encodeContent('operators', 'rows', rows), false)],
    ['a question that is none', encodePart('a', encodeContent('operators', 'list', query), false)],
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
