import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GapReason } from 'webmq-client/protocol'
import { eventually, historyOf } from 'webmq-conformance'
import { createMeshBroker, type MeshBroker, type MeshBrokerOptions } from '../../src/brokers/mesh/broker.js'
import type { Position } from '../../src/ports/broker.js'
import { CutProxy } from './cut-proxy.js'

const PROCESS = fileURLToPath(new URL('mesh-process.mjs', import.meta.url))
/** Longer than a lost link may take to come back. */
const GRACE_MS = 1_000
const RULES = ['#=100000']
const NOWHERE: Position = { epoch: 'nowhere', offset: 0 }
const decoder = new TextDecoder()
const DEFAULTS: Omit<MeshBrokerOptions, 'log'> = {
  listen: { host: '127.0.0.1', port: 0 },
  peers: [],
  secret: 'shared by the nodes of this test',
  brokerNamespace: 'test',
  brokerTimeoutMs: 5_000,
  brokerStartTimeoutMs: 5_000,
  brokerHeartbeatMs: 1_000,
  brokerMaxPendingBytes: 64 * 1_048_576,
  maxPayloadBytes: 262_144,
  dedupeWindowMs: 60_000,
  dedupeMaxIds: 1_000,
  ...historyOf(...RULES),
}

interface Node {
  readonly broker: MeshBroker
  readonly texts: string[]
  readonly gaps: GapReason[]
  readonly log: string[]
}

async function startNode(options: Partial<MeshBrokerOptions> = {}): Promise<Node> {
  const log: string[] = []
  const write = (_: object, message: string) => log.push(message)
  const node: Node = {
    broker: createMeshBroker({
      ...DEFAULTS,
      log: { debug: () => undefined, info: () => undefined, warn: write },
      ...options,
    }),
    texts: [],
    gaps: [],
    log,
  }
  onTestFinished(() => node.broker.stop())
  await node.broker.start({
    deliver: ({ payload }) => node.texts.push(decoder.decode(payload)) > 0,
    gap: (reason) => node.gaps.push(reason),
    status: () => undefined,
  })
  await node.broker.bind('#')
  return node
}

function placeOf({ broker }: Node): { host: string; port: number } {
  if (broker.address === undefined) throw new Error('it does not listen')
  return broker.address
}

async function publish(
  { broker }: Node,
  text: string,
  more: { messageId?: string; key?: string } = {},
): Promise<Position> {
  const { position } = await broker.publish({ key: 'a', payload: Buffer.from(text), isBinary: false, ...more })
  return position ?? NOWHERE
}

async function read({ broker }: Node, range: Parameters<MeshBroker['read']>[0]) {
  const { messages, gap, position } = await broker.read(range, ['#'])
  return { texts: messages.map(({ payload }) => decoder.decode(payload)), gap, position }
}

/** Two nodes whose one link can be cut. */
async function startPair(options: Partial<MeshBrokerOptions> = {}) {
  const a = await startNode(options)
  const proxy = new CutProxy(() => placeOf(a).port)
  const place = await proxy.start()
  onTestFinished(() => proxy.stop())
  const b = await startNode({ ...options, peers: [place] })
  const areLinked = () => eventually(() => expect([a.broker.linkCount, b.broker.linkCount]).toEqual([1, 1]))
  await areLinked()
  const areApart = () =>
    eventually(() => expect([a.broker.linkCount, b.broker.linkCount]).toEqual([0, 0]), 2 * GRACE_MS)
  return { a, b, proxy, areLinked, areApart }
}

async function forkNode(peers: readonly object[]): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(PROCESS, [JSON.stringify({ ...DEFAULTS, peers, rules: RULES })])
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let port = 0
  child.on('message', (message: { port?: number }) => {
    port = message.port ?? port
  })
  await eventually(() => expect(port).toBeGreaterThan(0))
  return { child, port }
}

describe('the log of a mesh', () => {
  it('is taken over by a node that starts, with its times, and is nothing new to who listens there', async () => {
    const a = await startNode()
    const gone = await startNode({ peers: [placeOf(a)] })
    for (let index = 0; index < 3_000; index++) void publish(index % 2 === 0 ? a : gone, `${index}`)
    await publish(gone, 'last')
    await gone.broker.stop()
    const before = await read(a, { last: 10_000 })
    expect(before.texts).toHaveLength(3_001)
    await eventually(async () => expect((await read(a, { rewindMs: 20 })).texts).toEqual([]))
    const late = await startNode({ peers: [placeOf(a)] })
    expect(await read(late, { last: 10_000 })).toMatchObject({ texts: before.texts, gap: undefined })
    expect((await read(late, { rewindMs: 20 })).texts).toEqual([])
    await publish(a, 'new')
    expect([late.texts, late.gaps]).toEqual([['new'], []])
    // A client of the node that is gone comes to one that never knew it.
    const seen = { epoch: before.position.epoch, offset: before.position.offset - 1 }
    expect(await read(late, { since: seen })).toMatchObject({ texts: ['last', 'new'], gap: undefined })
  })

  it('says that the rest is gone to who comes back too late, and to those who were cut off too long', async () => {
    const small = { ...historyOf(...RULES), historyMaxMessages: 100 }
    const { a, b, proxy, areLinked, areApart } = await startPair(small)
    const first = await publish(a, 'first')
    proxy.cut()
    await areApart()
    for (let index = 0; index < 50; index++) await publish(a, `kept ${index}`)
    proxy.mend()
    await areLinked()
    expect([b.texts.length, b.gaps]).toEqual([51, []])
    expect(await read(b, { since: first })).toMatchObject({ gap: undefined })
    proxy.cut()
    await areApart()
    for (let index = 0; index < 150; index++) await publish(a, `${index}`)
    proxy.mend()
    await areLinked()
    await publish(a, 'after')
    expect(b.gaps).toEqual(['history-expired'])
    expect(b.texts.slice(51)).toEqual([...Array.from({ length: 100 }, (_, index) => `${index + 50}`), 'after'])
    for (const node of [a, b]) expect((await read(node, { since: first })).gap).toBe('history-expired')
    expect([a.gaps, (await read(a, { last: 1_000 })).texts.length]).toEqual([[], 100])
  })

  it('stays within its bounds under a flood, on every node', async () => {
    const bounds = { ...historyOf(...RULES), historyMaxMessages: 1_000, historyMaxBytes: 50_000 }
    const { a, b } = await startPair(bounds)
    for (let round = 0; round < 100; round++) {
      const payload = new Uint8Array(round % 2 === 0 ? 10 : 200)
      const sent = Array.from({ length: 200 }, () =>
        Promise.all([a, b].map(({ broker }) => broker.publish({ key: 'a', payload, isBinary: true }))),
      )
      await Promise.all(sent)
      for (const { broker } of [a, b]) {
        const { messages } = await broker.read({ last: 100_000 }, ['#'])
        expect(messages.length).toBeLessThanOrEqual(1_000)
        expect(messages.reduce((sum, message) => sum + message.payload.length, 0)).toBeLessThanOrEqual(50_000)
      }
    }
    expect([a.texts.length, b.texts.length]).toEqual([40_000, 40_000])
  })

  it('has one of two messages of one id that nodes publish at once, and a client that moves gets it once', async () => {
    const { a, b } = await startPair()
    const before: Position[] = []
    for (let round = 0; round < 20; round++) {
      const [fromA = NOWHERE, fromB = NOWHERE] = await Promise.all(
        [a, b].map(({ broker }) => broker.position() ?? NOWHERE),
      )
      const told = [a.texts.length, b.texts.length]
      await Promise.all([
        publish(a, `a ${round}`, { messageId: `${round}` }),
        publish(b, `b ${round}`, { messageId: `${round}` }),
      ])
      await publish(a, `end ${round}`)
      await eventually(() => expect([a, b].map(({ texts }) => texts.at(-1))).toEqual([`end ${round}`, `end ${round}`]))
      expect([a.texts.length, b.texts.length]).toEqual(told.map((count) => count + 2))
      before.push(fromA, fromB, { ...fromA, offset: fromA.offset + 1 }, { ...fromB, offset: fromB.offset + 1 })
      // From before, and from in between, at either node.
      for (const since of [fromA, fromB]) {
        for (const node of [a, b]) expect((await read(node, { since })).texts).toHaveLength(2)
        const between = { ...since, offset: since.offset + 1 }
        for (const node of [a, b]) expect((await read(node, { since: between })).texts).toEqual([`end ${round}`])
      }
    }
    // A node that starts later has seen neither of two come.
    const late = await startNode({ peers: [placeOf(a), placeOf(b)] })
    for (const since of before) {
      expect((await read(late, { since })).texts).toHaveLength((await read(a, { since })).texts.length)
    }
  })

  it('is gone on with at another node when one is killed, and told of once it stays away', {
    timeout: 40_000,
  }, async () => {
    const a = await startNode()
    const { child, port } = await forkNode([placeOf(a)])
    const b = await startNode({ peers: [placeOf(a), { host: '127.0.0.1', port }] })
    await eventually(() => expect([a, b].map(({ broker }) => broker.linkCount)).toEqual([2, 2]))
    const positions: Position[] = []
    child.on('message', (message: { position?: Position }) => {
      if (message.position !== undefined) positions.push(message.position)
    })
    for (let index = 0; index < 100; index++) child.send(`${index}`)
    for (let index = 0; index < 100; index++) await publish(index % 2 === 0 ? a : b, `other ${index}`)
    await eventually(() => expect(positions).toHaveLength(200))
    const [at = NOWHERE] = positions.slice(120)
    child.kill('SIGKILL')
    await publish(a, 'after')
    await eventually(() => expect(b.texts.at(-1)).toBe('after'))
    for (const node of [a, b]) {
      const { texts, gap } = await read(node, { since: at })
      expect(gap).toBeUndefined()
      expect(texts).toHaveLength(80)
      expect(new Set(texts).size).toBe(80)
    }
    expect([a.gaps, b.gaps]).toEqual([[], []])
    await eventually(() => expect([a.gaps, b.gaps]).toEqual([['broker-lost'], ['broker-lost']]), 15_000)
  })

  it('is made whole by a peer when the node that published it is gone', { timeout: 40_000 }, async () => {
    const a = await startNode()
    const { child, port } = await forkNode([placeOf(a)])
    const proxy = new CutProxy(() => port)
    const cuttable = await proxy.start()
    onTestFinished(() => proxy.stop())
    const b = await startNode({ peers: [placeOf(a), cuttable] })
    await eventually(() => expect([a, b].map(({ broker }) => broker.linkCount)).toEqual([2, 2]))
    // What the third node publishes reaches one of the two, and then it is killed.
    proxy.cut()
    for (let index = 0; index < 50; index++) child.send(`${index}`)
    await eventually(() => expect(a.texts).toHaveLength(50))
    child.kill('SIGKILL')
    expect(b.texts.length).toBeLessThan(50)
    await eventually(() => expect(b.texts).toEqual(a.texts))
    expect(b.gaps).toEqual([])
  })

  it('is not shared with a node of other rules: messages come to who listens, and who resumes is told', async () => {
    const a = await startNode()
    const other = await startNode({ ...historyOf('b.#=10'), peers: [placeOf(a)] })
    const without = await startNode({ ...historyOf(), peers: [placeOf(a), placeOf(other)] })
    await eventually(() => expect([a, other, without].map(({ broker }) => broker.linkCount)).toEqual([2, 2, 2]))
    expect(a.log.filter((line) => line.includes('other history rules'))).toHaveLength(2)
    const since = await publish(a, 'one')
    await publish(other, 'two', { key: 'b' })
    await publish(without, 'three')
    for (const { texts } of [a, other, without]) {
      await eventually(() => expect([...texts].sort()).toEqual(['one', 'three', 'two']))
    }
    expect((await read(a, { since })).gap).toBe('no-history')
    await Promise.all([other.broker.stop(), without.broker.stop()])
    expect((await read(a, { since })).gap).toBe('history-expired')
    expect(await read(a, { since: await publish(a, 'four') })).toMatchObject({ gap: undefined })
  })
})
