import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GapReason } from 'webmq-client/protocol'
import { eventually, historyOf } from 'webmq-conformance'
import { freePort } from 'webmq-services'
import { createMeshBroker, type MeshBroker } from '../../src/brokers/mesh/broker.js'
import type { BrokerSink, InboundMessage, Position } from '../../src/ports/broker.js'
import { formatPosition, isAfter } from '../../src/ports/position.js'
import { CutProxy } from './cut-proxy.js'

const NODE_COUNT = 3
const CLIENT_COUNT = 6
const RUN_COUNT = Number(process.env.WEBMQ_MESH_RUNS ?? 40)
const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined }
const decoder = new TextDecoder()

/** What a client of the protocol does: resumes from its position, replays page by page, then goes live. */
class Client {
  readonly texts: string[] = []
  /** Each as it was told. */
  readonly gaps: string[] = []
  #position: Position | undefined
  #node: MeshNode | undefined
  /** Live messages that come while it replays. */
  #captured: { text: string; position: Position }[] | undefined
  #attempt = 0

  get isConnected(): boolean {
    return this.#node !== undefined && this.#captured === undefined
  }

  disconnect(): void {
    this.#attempt++
    this.#node?.clients.delete(this)
    this.#node = undefined
    this.#captured = undefined
  }

  /** @param limit Messages of a page. @param dropAfter Messages after which the connection breaks, in the middle of a replay. */
  async connect(node: MeshNode, limit: number, dropAfter: number): Promise<void> {
    this.disconnect()
    const attempt = this.#attempt
    this.#node = node
    this.#captured = []
    node.clients.add(this)
    const { broker } = node
    if (this.#position === undefined) this.#position = await broker.position()
    let leftCount = dropAfter
    for (;;) {
      const since = this.#position
      if (since === undefined) throw new Error('no position')
      const { messages, position, isPartial, gap } = await broker.read({ since, limit }, ['#'])
      if (attempt !== this.#attempt) return
      if (gap !== undefined) this.gaps.push(`${gap} since ${formatPosition(since)} at ${formatPosition(position)}`)
      for (const message of messages) {
        if (leftCount-- === 0) return this.disconnect()
        this.#handle(decoder.decode(message.payload), message.position ?? since)
      }
      this.#position = position
      if (!isPartial) break
    }
    const captured = this.#captured
    this.#captured = undefined
    const end = this.#position
    for (const { text, position } of captured) if (isAfter(position, end)) this.#handle(text, position)
  }

  deliver({ payload, position }: InboundMessage): void {
    if (position === undefined) throw new Error('a message without a position')
    const text = decoder.decode(payload)
    if (this.#captured === undefined) this.#handle(text, position)
    else this.#captured.push({ text, position })
  }

  #handle(text: string, position: Position): void {
    this.texts.push(text)
    this.#position = position
  }
}

/** A node that is stopped and started again, each time as another one. */
class MeshNode implements BrokerSink {
  readonly clients = new Set<Client>()
  readonly port: number
  readonly #peers: readonly { host: string; port: number }[]
  broker: MeshBroker
  isRunning = false

  constructor(port: number, peers: readonly { host: string; port: number }[]) {
    this.port = port
    this.#peers = peers
    this.broker = this.#create()
  }

  async start(): Promise<void> {
    await this.broker.start(this)
    await this.broker.bind('#')
    this.isRunning = true
  }

  /** Its clients go first, as when a server drains. */
  async restart(): Promise<void> {
    this.isRunning = false
    for (const client of [...this.clients]) client.disconnect()
    await this.broker.stop()
    this.broker = this.#create()
    await this.start()
  }

  deliver(message: InboundMessage): boolean {
    for (const client of this.clients) client.deliver(message)
    return true
  }

  status(): void {
    // Nodes are always up while they run.
  }

  gap(reason: GapReason): void {
    for (const client of this.clients) client.gaps.push(reason)
  }

  #create(): MeshBroker {
    return createMeshBroker({
      listen: { host: '127.0.0.1', port: this.port },
      peers: this.#peers,
      secret: 'shared by the nodes of this test',
      brokerNamespace: 'test',
      brokerTimeoutMs: 5_000,
      brokerStartTimeoutMs: 5_000,
      brokerHeartbeatMs: 1_000,
      brokerMaxPendingBytes: 16 * 1_048_576,
      maxPayloadBytes: 262_144,
      dedupeWindowMs: 60_000,
      dedupeMaxIds: 1_000,
      ...historyOf('#=100000'),
      log: SILENT,
    })
  }
}

type Step =
  | { readonly do: 'publish'; readonly node: number; readonly count: number }
  | {
      readonly do: 'connect'
      readonly client: number
      readonly node: number
      readonly limit: number
      readonly drop: number
    }
  | { readonly do: 'disconnect'; readonly client: number }
  | { readonly do: 'turn' | 'wait' | 'cut' | 'mend' }
  | { readonly do: 'restart'; readonly node: number }

const node = fc.nat(NODE_COUNT - 1)
const client = fc.nat(CLIENT_COUNT - 1)
const limit = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(1_000))
const drop = fc.oneof({ weight: 1, arbitrary: fc.nat(20) }, { weight: 3, arbitrary: fc.constant(1_000_000) })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ do: fc.constant('publish' as const), node, count: fc.integer({ min: 1, max: 20 }) }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('connect' as const), client, node, limit, drop }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('disconnect' as const), client }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('turn' as const, 'turn' as const, 'wait' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'mend' as const, 'mend' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), node }) },
)

describe('clients of a mesh that move from node to node', () => {
  it(`get every message once, over ${RUN_COUNT} random schedules`, { timeout: RUN_COUNT * 10_000 }, async () => {
    const counts = { published: 0, delivered: 0, connects: 0, restarts: 0, cuts: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 120 }), async (steps) => {
        await run(steps, counts)
      }),
      { numRuns: RUN_COUNT, endOnFailure: true },
    )
    process.stdout.write(`mesh, ${RUN_COUNT} random schedules: ${JSON.stringify(counts)}\n`)
    expect(counts.restarts).toBeGreaterThan(RUN_COUNT / 4)
  })
})

async function run(steps: readonly Step[], counts: Record<string, number>): Promise<void> {
  const count = (name: string, by = 1) => {
    counts[name] = (counts[name] ?? 0) + by
  }
  const ports: number[] = []
  while (ports.length < NODE_COUNT) ports.push(await freePort())
  // The ways between the first two nodes lead over what can be cut.
  const proxies = [0, 1].map((index) => new CutProxy(() => ports[index] ?? 0))
  const [toFirst, toSecond] = await Promise.all(proxies.map((proxy) => proxy.start()))
  const [first, second, third] = ports.map((port) => ({ host: '127.0.0.1', port }))
  const peers = [
    [toSecond, third],
    [toFirst, third],
    [first, second],
  ]
  const nodes = ports.map((port, index) => new MeshNode(port, peers[index]?.filter((peer) => peer !== undefined) ?? []))
  const clients = Array.from({ length: CLIENT_COUNT }, () => new Client())
  const published: string[] = []
  const pending: Promise<unknown>[] = []
  try {
    for (const node of nodes) await node.start()
    await eventually(() => expect(nodes.map(({ broker }) => broker.linkCount)).toEqual(nodes.map(() => NODE_COUNT - 1)))
    for (const [index, client] of clients.entries())
      await client.connect(nodes[index % NODE_COUNT] as MeshNode, 1_000, 1e6)
    const connecting = (client: Client | undefined, node: MeshNode | undefined, limit: number, drop: number) => {
      if (client === undefined || node?.isRunning !== true) return
      count('connects')
      pending.push(client.connect(node, limit, drop))
    }
    for (const each of steps) {
      switch (each.do) {
        case 'publish': {
          const node = nodes[each.node]
          for (let index = 0; node?.isRunning === true && index < each.count; index++) {
            const text = `${published.length}`
            published.push(text)
            const payload = Buffer.from(text)
            pending.push(Promise.resolve(node.broker.publish({ key: `k.${index % 3}`, payload, isBinary: false })))
          }
          break
        }
        case 'connect':
          connecting(clients[each.client], nodes[each.node], each.limit, each.drop)
          break
        case 'disconnect':
          clients[each.client]?.disconnect()
          break
        case 'turn':
          await turn()
          break
        case 'wait':
          await wait(3)
          break
        case 'cut':
          count('cuts')
          for (const proxy of proxies) proxy.cut()
          break
        case 'mend':
          for (const proxy of proxies) proxy.mend()
          break
        case 'restart': {
          // A node that stops while a link is broken takes with it what the other side has not got: that is another test's.
          for (const proxy of proxies) proxy.mend()
          await eventually(() => expect(nodes.map(({ broker }) => broker.linkCount)).toEqual(nodes.map(() => 2)))
          const node = nodes[each.node]
          count('restarts')
          await node?.restart()
          break
        }
      }
    }
    for (const proxy of proxies) proxy.mend()
    await Promise.all(pending)
    for (const [index, client] of clients.entries()) {
      if (!client.isConnected) await client.connect(nodes[(index * 2) % NODE_COUNT] as MeshNode, 1_000, 1e6)
    }
    for (const client of clients) {
      await eventually(() => {
        if (client.texts.length < published.length)
          throw new Error(`${client.texts.length} of ${published.length}, ${client.gaps.join()}`)
      })
      expect(client.gaps).toEqual([])
      expect([...client.texts].sort()).toEqual([...published].sort())
    }
    count('published', published.length)
    count(
      'delivered',
      clients.reduce((sum, { texts }) => sum + texts.length, 0),
    )
  } finally {
    await Promise.all(nodes.map(({ broker }) => broker.stop()))
    for (const proxy of proxies) proxy.stop()
  }
}
