import { afterEach, describe, expect, it, vi } from 'vitest'
import { freePort, type ServiceKind, sharedService } from 'webmq-services'
import type { ServerOptions } from '../../src/doors/options/server-options.js'
import { ApiServer, SECRET, tokenOf } from '../api-server.js'
import { ProtocolClient } from '../protocol-client.js'

const nodes: ApiServer[] = []
const soon = { timeout: 20_000, interval: 20 }

afterEach(async () => {
  await Promise.all(nodes.splice(0).map(({ server }) => server.stop({ drainMs: 0 })))
})

/** Options of three nodes that meet at a broker. */
async function meet(kind: ServiceKind | 'mesh'): Promise<readonly ServerOptions[]> {
  if (kind !== 'mesh') {
    const { url } = await sharedService(kind)
    return Array(3).fill({ broker: url, brokerNamespace: `operators-${process.pid}` })
  }
  const places = await Promise.all([0, 1, 2].map(async () => `127.0.0.1:${await freePort()}`))
  return places.map((listen) => ({ broker: `mesh://${places.join()}`, mesh: { listen } }))
}

const start = async (options: ServerOptions | undefined) => {
  const node = await ApiServer.start({ jwt: { secret: SECRET }, ...options })
  nodes.push(node)
  return node
}

describe.each<ServiceKind | 'mesh'>(['redis', 'nats', 'rabbitmq', 'mesh'])('operators over %s', (kind) => {
  // Symptom: behind a balancer nobody could list the connections of one node, or of all. Cause: the node that answered
  // listed its own.
  it('list the connections of all nodes, and find a user on them', async () => {
    await Promise.all((await meet(kind)).map(start))
    const peerCounts = () => nodes.map(({ server }) => server.stats().cluster.peerCount)
    await vi.waitFor(() => expect(peerCounts()).toEqual([2, 2, 2]), soon)
    const names = await Promise.all(nodes.map(async (node) => String((await node.ask('/api/info')).json.node)))
    const headers = { authorization: `Bearer ${await tokenOf('ann')}` }
    const clients = await Promise.all(
      nodes
        .flatMap(({ webSocketUrl }) => [webSocketUrl, webSocketUrl])
        .map((url) => ProtocolClient.open(url, { headers })),
    )
    const sessions = clients.map((client) => client.received('welcome')[0]?.session)
    const expected = sessions.map((session, index) => `${names[Math.floor(index / 2)]} ${session}`).toSorted()
    for (const node of nodes) {
      await vi.waitFor(async () => {
        const rows: { node: string; session: string }[] = []
        let query = 'node=all&limit=4'
        for (let next: unknown = ''; next !== undefined; query = `node=all&limit=4&after=${next}`) {
          const { json } = await node.ask(`/api/connections?${query}`)
          expect(json.missing).toEqual([])
          rows.push(...(json.connections as typeof rows))
          next = json.next
        }
        expect(rows.map((row) => `${row.node} ${row.session}`).toSorted()).toEqual(expected)
        const { json } = await node.ask('/api/user?user=ann')
        const places = json.nodes as { node: string; connections: number }[]
        expect(places.map((place) => `${place.node} ${place.connections}`).toSorted()).toEqual(
          names.map((name) => `${name} 2`).toSorted(),
        )
        expect(json.missing).toEqual([])
      }, soon)
    }
  })

  it('revoke tokens and end connections on other nodes, and on one that starts later', async () => {
    const [first, second, third] = await meet(kind)
    const [one, other] = [await start(first), await start(second)]
    await vi.waitFor(async () => expect((await one.ask('/api/info')).json.nodes).toHaveLength(2), soon)
    const connect = async (jti: string) =>
      ProtocolClient.open(other.webSocketUrl, {
        headers: { authorization: `Bearer ${await tokenOf('ann', ['#'], { jti })}` },
      })
    const [stolen, kicked] = [await connect('stolen'), await connect('good')]
    await one.ask('/api/revoke', { body: { tokenId: 'stolen', until: 4_102_444_800 } })
    await vi.waitFor(
      () => expect([stolen, kicked].map(({ closure }) => closure?.code)).toEqual([4502, undefined]),
      soon,
    )
    await one.ask('/api/disconnect', { body: { user: 'ann' } })
    await vi.waitFor(() => expect(kicked.closure?.code).toBe(4503), soon)
    const late = await start(third)
    await vi.waitFor(() => expect(late.server.stats().cluster.revocationCount).toBe(1), soon)
  })
})
