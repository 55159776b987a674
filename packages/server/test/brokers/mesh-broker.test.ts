import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GapReason } from 'webmq-client/protocol'
import type { BrokerSystem } from 'webmq-conformance'
import { brokerSuite, eventually, historyOf, messageIdOf } from 'webmq-conformance'
import { freePort } from 'webmq-services'
import { MeshBroker } from '../../src/adapters/brokers/mesh/broker.js'
import type { MeshAddress, MeshBrokerOptions } from '../../src/adapters/brokers/mesh/options.js'
import type { BrokerCapabilities, OutboundMessage } from '../../src/kernel/ports/broker.js'
import type { HistoryOptions } from '../../src/kernel/ports/history-rules.js'

const LOOPBACK = { host: '127.0.0.1', port: 0 }
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }
const DEFAULTS: MeshBrokerOptions = {
  listen: LOOPBACK,
  peers: [],
  secret: 'shared by the nodes of this test',
  brokerNamespace: 'test',
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 16 * 1_048_576,
  maxPayloadBytes: 262_144,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  ...historyOf(),
  logger: silent,
}
const CAPABILITIES: Omit<BrokerCapabilities, 'history'> = {
  retained: false,
  ordered: false,
  sharedLog: false,
  confirms: true,
  queueGroups: true,
  durable: false,
  manyNodes: true,
}

/** Nodes that each know those that were there before. */
function createSystem(options: HistoryOptions): BrokerSystem {
  const nodes: MeshBroker[] = []
  return {
    createNode(history = options) {
      const peers = nodes.flatMap(({ address }) => (address === undefined ? [] : [address]))
      const node = new MeshBroker({ ...DEFAULTS, ...(options.history.isEmpty ? options : history), peers })
      nodes.push(node)
      return node
    },
    residue: async () => openSockets(),
  }
}

/** Sockets that were opened since this file began: tests of other files in this process may leave some. */
const sockets = new Set<Socket>()
for (const channel of ['net.client.socket', 'net.server.socket']) {
  subscribe(channel, (message) => {
    const { socket } = message as { readonly socket: Socket }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
}

/** Sockets of this process, and servers: a line each. */
function openSockets(): string[] {
  const servers = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap')
  return [...servers, ...Array.from(sockets, () => 'TCPSocketWrap')]
}

brokerSuite('mesh', () => createSystem(historyOf()), { ...CAPABILITIES, history: false })
brokerSuite('mesh with history', () => createSystem(historyOf('#=1000')), { ...CAPABILITIES, history: true })

/** A node that runs, and what it was told. */
interface Node {
  readonly broker: MeshBroker
  readonly texts: string[]
  readonly gaps: GapReason[]
  readonly log: string[]
}

async function startNode(options: Partial<MeshBrokerOptions> = {}): Promise<Node> {
  const node: Node = { broker: newBroker(options, (line) => node.log.push(line)), texts: [], gaps: [], log: [] }
  onTestFinished(() => node.broker.stop())
  await node.broker.start({
    deliver: ({ payload }) => node.texts.push(Buffer.from(payload).toString()) > 0,
    gap: (reason) => node.gaps.push(reason),
    refused: () => undefined,
    status: () => undefined,
  })
  return node
}

function newBroker(options: Partial<MeshBrokerOptions>, write: (line: string) => void): MeshBroker {
  const line = (fields: object, message: string) => {
    const { err } = fields as { err?: Error }
    write(err === undefined ? message : `${message}: ${err.message}`)
  }
  return new MeshBroker({ ...DEFAULTS, logger: { debug: () => undefined, info: line, warn: line }, ...options })
}

function addressOf({ broker }: Node): MeshAddress {
  if (broker.address === undefined) throw new Error('it does not listen')
  return broker.address
}

function message(text: string, key = 'a'): OutboundMessage {
  return { key, payload: Buffer.from(text), isBinary: false }
}

/** Every node is linked to every other. */
function areLinked(...nodes: readonly Node[]): Promise<void> {
  return eventually(() =>
    expect(nodes.map(({ broker }) => broker.linkCount)).toEqual(nodes.map(() => nodes.length - 1)),
  )
}

describe('MeshBroker', () => {
  it('answers at once, without a promise, when no peer listens', async () => {
    const a = await startNode()
    const b = await startNode({ peers: [addressOf(a)] })
    await b.broker.bind('b')
    const one = { ...message('one'), messageId: messageIdOf('one') }
    expect(a.broker.publish(message('one'))).toEqual({ isDuplicate: false })
    expect([a.broker.publish(one), a.broker.publish(one)]).toEqual([{ isDuplicate: false }, { isDuplicate: true }])
    expect(a.broker.publish(message('two', 'b'))).toBeInstanceOf(Promise)
  })

  it('has one link per pair of nodes that dial each other at once, again and again', async () => {
    for (let round = 0; round < 10; round++) {
      const ports = [await freePort(), await freePort(), await freePort()]
      const peers = ports.map((port) => ({ host: '127.0.0.1', port }))
      // Each one has its own address in the list too, and one of them twice.
      const nodes = await Promise.all(
        peers.map((listen) => startNode({ listen, peers: [...peers, ...peers.slice(0, 1)] })),
      )
      for (const { broker } of nodes) await broker.bind('#')
      await areLinked(...nodes)
      await Promise.all(nodes.map(({ broker }, index) => broker.publish(message(`${round} ${index}`))))
      for (const { texts } of nodes) {
        await eventually(() => expect([...texts].sort()).toEqual([0, 1, 2].map((index) => `${round} ${index}`)))
      }
      // Each of the three links has two ends in this process.
      await eventually(() => expect(openSockets().filter((kind) => kind === 'TCPSocketWrap')).toHaveLength(6))
      await Promise.all(nodes.map(({ broker }) => broker.stop()))
      expect(nodes.flatMap(({ gaps }) => gaps)).toEqual([])
      expect(nodes.map(({ broker }) => broker.stats().lostCount)).toEqual([0, 0, 0])
    }
  })

  it('finds nodes that come and go under a name', async () => {
    const ports = new Map([
      ['127.0.0.2', 0],
      ['127.0.0.3', 0],
    ])
    const port = await freePort()
    const listed = new Set<string>()
    const resolve = async (host: string) => {
      expect(host).toBe('mesh.internal')
      return [...listed]
    }
    const start = (host: string) =>
      startNode({ listen: { host, port }, peers: [{ host: 'mesh.internal', port }], resolve, resolveIntervalMs: 20 })
    const nodes: Node[] = []
    for (const host of ports.keys()) {
      listed.add(host)
      nodes.push(await start(host))
    }
    await areLinked(...nodes)
    // A node that is not listed yet is found once it is.
    const late = await startNode({ listen: { host: '127.0.0.4', port } })
    listed.add('127.0.0.4')
    await areLinked(...nodes, late)
    listed.delete('127.0.0.4')
    await late.broker.stop()
    await areLinked(...nodes)
  })

  it('starts without peers that are not there, and says so once', async () => {
    const [listen, missing] = [await freePort(), await freePort()].map((port) => ({ host: '127.0.0.1', port }))
    const a = await startNode({ ...(listen && { listen }), peers: missing === undefined ? [] : [missing] })
    await a.broker.bind('#')
    expect(await a.broker.publish(message('alone'))).toEqual({ isDuplicate: false })
    const b = await startNode({ listen: missing ?? LOOPBACK })
    await areLinked(a, b)
    expect(a.log.filter((line) => line.includes('cannot be linked'))).toHaveLength(1)
  })

  it('leaves a link alone when its node answers under another address too', async () => {
    // Whichever of the two decides about links.
    for (let round = 0; round < 6; round++) {
      const b = await startNode()
      let closedCount = 0
      const otherAddress = createServer((socket) => {
        const onward = connect(addressOf(b))
        pipeline(socket, onward, socket, () => closedCount++)
      })
      await once(otherAddress.listen(0, '127.0.0.1'), 'listening')
      onTestFinished(() => {
        otherAddress.close()
      })
      const listed = ['127.0.0.1']
      const { port } = otherAddress.address() as AddressInfo
      const resolve = async (host: string) => (host === 'other' ? listed.slice(1) : listed.slice(0, 1))
      const peers = [
        { host: 'one', port: addressOf(b).port },
        { host: 'other', port },
      ]
      const a = await startNode({ peers, resolve, resolveIntervalMs: 20 })
      await areLinked(a, b)
      listed.push('127.0.0.1')
      await eventually(() => expect(closedCount).toBe(1))
      await areLinked(a, b)
      expect([a, b].map(({ broker }) => broker.stats().lostCount)).toEqual([0, 0])
      expect([a, b].flatMap(({ log }) => log.filter((line) => line === 'mesh link is up'))).toHaveLength(2)
    }
  })

  it('links more than twenty nodes too, and says that a broker is the way', async () => {
    const nodes: Node[] = []
    for (let index = 0; index < 21; index++) {
      const node = await startNode({ peers: nodes.map(addressOf) })
      await node.broker.bind('#')
      nodes.push(node)
    }
    await areLinked(...nodes)
    await Promise.all(nodes.map(({ broker }, index) => broker.publish(message(`${index}`))))
    const all = nodes.map((_, index) => `${index}`).sort()
    for (const { texts, gaps, log } of nodes) {
      await eventually(() => expect([...texts].sort()).toEqual(all))
      expect(gaps).toEqual([])
      expect(log.filter((line) => line.includes('a real broker is the way'))).toHaveLength(1)
    }
  })

  it('says where it cannot listen', async () => {
    const a = await startNode()
    await expect(startNode({ listen: addressOf(a) })).rejects.toMatchObject({ code: 'E_ADDRESS_IN_USE' })
    await expect(startNode({ listen: { host: '192.0.2.1', port: 0 } })).rejects.toMatchObject({
      code: 'E_ADDRESS_UNAVAILABLE',
    })
  })

  it('does not link with another secret or namespace, and says why on both sides', async () => {
    const a = await startNode()
    for (const [difference, reason] of [
      [{ secret: 'another' }, 'mesh.secret'],
      [{ secret: undefined }, 'mesh.secret'],
      [{ brokerNamespace: 'other' }, 'brokerNamespace'],
    ] as const) {
      const b = await startNode({ ...difference, peers: [addressOf(a)] })
      expect(b.broker.linkCount).toBe(0)
      expect(b.log.join()).toContain(reason)
    }
    expect(a.broker.linkCount).toBe(0)
    expect(a.log.join()).toContain('mesh connection refused')
  })

  it('tells a gap when it meets a node that has accepted messages without it', async () => {
    const listed: string[] = []
    const a = await startNode()
    const b = await startNode({
      peers: [{ host: 'a.internal', port: addressOf(a).port }],
      resolve: async () => listed,
      resolveIntervalMs: 20,
    })
    for (const { broker } of [a, b]) await broker.bind('#')
    await a.broker.publish(message('before'))
    listed.push('127.0.0.1')
    await areLinked(a, b)
    await a.broker.publish(message('after'))
    expect(b.gaps).toEqual(['broker-lost'])
    expect(b.texts).toEqual(['after'])
    expect(a.gaps).toEqual([])
    // Whoever has no listeners yet has missed nothing.
    const c = await startNode({ peers: [addressOf(a), addressOf(b)] })
    await c.broker.bind('#')
    expect([a.gaps, b.gaps, c.gaps]).toEqual([[], ['broker-lost'], []])
  })

  it('tells no gap when a node leaves', async () => {
    const a = await startNode()
    const leaving = await startNode({ peers: [addressOf(a)] })
    for (const { broker } of [a, leaving]) await broker.bind('#')
    await leaving.broker.stop()
    expect(a.broker.linkCount).toBe(0)
    expect([a.gaps, leaving.gaps]).toEqual([[], []])
    expect(a.broker.stats().lostCount).toBe(0)
  })

  it('refuses a publish, before anything is sent, that a slow peer has no room for', async () => {
    const a = await startNode({ brokerMaxPendingBytes: 10_000 })
    const b = await startNode({ peers: [addressOf(a)] })
    await b.broker.bind('#')
    const big = { key: 'a', payload: new Uint8Array(6_000), isBinary: true }
    const first = a.broker.publish(big)
    expect(() => a.broker.publish(big)).toThrow(expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE' }))
    expect(a.broker.stats()).toMatchObject({ pendingCount: 1, pendingBytes: 6_257, rejectedCount: 1 })
    await first
    await a.broker.publish(big)
    expect(b.texts).toHaveLength(2)
    expect(a.broker.stats()).toMatchObject({ acceptedCount: 2, pendingCount: 0, pendingBytes: 0 })
  })

  // Symptom: 704,500 empty publishes to a node that stood still took 295 MiB, of 1 MiB allowed. Cause: payloads alone were counted.
  it('refuses small messages too that a slow peer has no room for', async () => {
    const a = await startNode({ brokerMaxPendingBytes: 10_000 })
    const b = await startNode({ peers: [addressOf(a)] })
    await b.broker.bind('#')
    const published: unknown[] = []
    const publish = () => {
      for (let count = 0; count < 1_000; count++) published.push(a.broker.publish(message('')))
    }
    expect(publish).toThrow(expect.objectContaining({ code: 'E_BROKER_UNAVAILABLE' }))
    expect(published).toHaveLength(Math.floor(10_000 / 257))
    await Promise.all(published)
    await a.broker.publish(message(''))
  })

  it('gives up a peer that leaves too many changes of patterns unacknowledged', async () => {
    const a = await startNode({ brokerMaxPendingBytes: 10_000 })
    const b = await startNode({ peers: [addressOf(a)] })
    await areLinked(a, b)
    const bind = (count: number) => Promise.all(Array.from({ length: count }, (_, at) => a.broker.bind(`p.${at}`)))
    await bind(65_536)
    expect(a.broker.stats().lostCount).toBe(0)
    await bind(65_536 + Math.ceil(10_000 / 256))
    expect(a.broker.stats().lostCount).toBe(1)
    expect(a.gaps).toEqual(['broker-lost'])
    await areLinked(a, b)
  })

  it('carries the largest payload that a server can be set to take', async () => {
    const maxPayloadBytes = 64 * 1_048_576
    const a = await startNode({ maxPayloadBytes, brokerMaxPendingBytes: maxPayloadBytes })
    const received: { byteCount: number; last: number | undefined }[] = []
    const b = newBroker({ maxPayloadBytes, peers: [addressOf(a)] }, () => undefined)
    onTestFinished(() => b.stop())
    await b.start({
      deliver: ({ payload }) => received.push({ byteCount: payload.length, last: payload.at(-1) }) > 0,
      gap: () => undefined,
      refused: () => undefined,
      status: () => undefined,
    })
    await b.bind('#')
    await a.broker.publish({ key: 'a', payload: new Uint8Array(maxPayloadBytes).fill(7), isBinary: true })
    await a.broker.publish({ key: 'a', payload: Uint8Array.of(8), isBinary: true })
    expect(received).toEqual([
      { byteCount: maxPayloadBytes, last: 7 },
      { byteCount: 1, last: 8 },
    ])
  })

  it('ends a start that is stopped', async () => {
    const broker = newBroker(
      { peers: [{ host: 'nowhere.internal', port: 1 }], resolve: () => new Promise(() => undefined) },
      () => undefined,
    )
    const started = broker.start({
      deliver: () => false,
      gap: () => undefined,
      refused: () => undefined,
      status: () => undefined,
    })
    await eventually(() => expect(broker.address).toBeDefined())
    await broker.stop()
    await expect(started).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    await eventually(() => expect(openSockets()).toEqual([]))
  })

  it('forgets a message id whose publish was refused', async () => {
    const a = await startNode({ brokerMaxPendingBytes: 1_024 })
    const b = await startNode({ peers: [addressOf(a)] })
    await b.broker.bind('#')
    const first = a.broker.publish({ ...message('x'.repeat(1_000)), messageId: messageIdOf('first') })
    const refused = async () => a.broker.publish({ ...message('y'.repeat(1_000)), messageId: messageIdOf('second') })
    await expect(refused()).rejects.toMatchObject({ code: 'E_BROKER_UNAVAILABLE' })
    await first
    expect(await refused()).toEqual({ isDuplicate: false })
    expect(b.texts).toHaveLength(2)
  })
})
