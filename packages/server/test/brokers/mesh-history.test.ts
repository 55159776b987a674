import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GapReason } from 'webmq-client/protocol'
import { eventually, historyOf, messageIdOf } from 'webmq-conformance'
import { MeshBroker } from '../../src/adapters/brokers/mesh/broker.js'
import type { MeshBrokerOptions } from '../../src/adapters/brokers/mesh/options.js'
import type { Position } from '../../src/kernel/ports/broker.js'
import { CutProxy } from './cut-proxy.js'

const PROCESS = fileURLToPath(new URL('mesh-process.mjs', import.meta.url))
/** A lost link has this long to come back, where a test waits until it is given up. */
const RELINK_MS = 50
const RULES = ['#=100000']
const NOWHERE: Position = { epoch: 'nowhere', offset: 0, fingerprint: 0 }
const decoder = new TextDecoder()
const DEFAULTS: Omit<MeshBrokerOptions, 'logger'> = {
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
    broker: new MeshBroker({
      ...DEFAULTS,
      logger: { debug: () => undefined, info: () => undefined, warn: write },
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
    refused: () => undefined,
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
  /** Both have given the other one up. */
  const areApart = () =>
    eventually(() =>
      expect([a, b].map(({ log }) => log.filter((line) => line.includes('given up')))).not.toContainEqual([]),
    )
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

describe('the log of a node of a mesh', () => {
  it('lets a client resume on the node, and on another one says gap and gives nothing', async () => {
    const a = await startNode()
    const b = await startNode({ peers: [placeOf(a)] })
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => publish(index % 2 === 0 ? a : b, `${index}`)))
    const since = await publish(a, 'last')
    await publish(b, 'missed')
    expect(await read(a, { since })).toMatchObject({ texts: ['missed'], gap: undefined })
    expect(await read(b, { since })).toMatchObject({ texts: [], gap: 'epoch-changed', position: b.broker.position() })
    expect((await read(b, { last: 10_000 })).texts).toHaveLength(1_002)
  })

  it('has what comes while nobody on the node listens', async () => {
    const a = await startNode()
    const b = await startNode({ peers: [placeOf(a)] })
    const since = b.broker.position() ?? NOWHERE
    await b.broker.unbind('#')
    await publish(a, 'away')
    await b.broker.bind('#')
    await publish(a, 'back')
    expect(await read(b, { since })).toMatchObject({ texts: ['away', 'back'], gap: undefined })
  })

  it('has all that was published while a link was away for a moment', async () => {
    const { a, b, proxy, areLinked } = await startPair()
    const since = b.broker.position() ?? NOWHERE
    proxy.cut()
    await eventually(() => expect(a.broker.linkCount).toBe(0))
    const published = publish(a, 'during')
    proxy.mend()
    await areLinked()
    await published
    expect(await read(b, { since })).toMatchObject({ texts: ['during'], gap: undefined })
    expect([a.gaps, b.gaps]).toEqual([[], []])
  })

  it('says gap after every place before a link was given up, and before it was made again', async () => {
    const { a, b, proxy, areLinked, areApart } = await startPair({ relinkMs: RELINK_MS })
    const before = b.broker.position() ?? NOWHERE
    proxy.cut()
    await areApart()
    await publish(a, 'missed')
    const apart = await publish(b, 'apart')
    // While they are apart nobody knows of more. They tell when they meet.
    expect(await read(b, { since: before })).toMatchObject({ texts: ['apart'], gap: 'broker-lost' })
    expect(await read(b, { since: apart })).toMatchObject({ texts: [], gap: undefined })
    proxy.mend()
    await areLinked()
    await publish(a, 'after')
    for (const since of [before, apart]) expect((await read(b, { since })).gap).toBe('broker-lost')
    expect(await read(b, { since: apart })).toMatchObject({ texts: ['after'] })
    expect((await read(b, { rewindMs: 60_000 })).gap).toBe('broker-lost')
    const since = b.broker.position() ?? NOWHERE
    await publish(a, 'later')
    expect(await read(b, { since })).toMatchObject({ texts: ['later'], gap: undefined })
    expect([a.gaps, b.gaps]).toEqual([
      ['broker-lost', 'broker-lost'],
      ['broker-lost', 'broker-lost'],
    ])
  })

  it('begins when the node starts: a time before that has a gap, and later places have none', async () => {
    const a = await startNode()
    await publish(a, 'before')
    const late = await startNode({ peers: [placeOf(a)] })
    const since = late.broker.position() ?? NOWHERE
    await publish(a, 'new')
    expect(await read(late, { since })).toMatchObject({ texts: ['new'], gap: undefined })
    expect(await read(late, { rewindMs: 60_000 })).toMatchObject({ texts: ['new'], gap: 'broker-lost' })
    expect((await read(late, { last: 10 })).texts).toEqual(['new'])
    expect([a.gaps, late.gaps]).toEqual([[], []])
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

  it('has one of two messages of one id that nodes publish at once', async () => {
    const { a, b } = await startPair()
    for (let round = 0; round < 20; round++) {
      const starts = [a, b].map(({ broker }) => broker.position() ?? NOWHERE)
      const toldCounts = [a, b].map(({ texts }) => texts.length)
      await Promise.all([
        publish(a, `a ${round}`, { messageId: messageIdOf(`${round}`) }),
        publish(b, `b ${round}`, { messageId: messageIdOf(`${round}`) }),
      ])
      await publish(a, `end ${round}`)
      await eventually(() => expect([a, b].map(({ texts }) => texts.at(-1))).toEqual([`end ${round}`, `end ${round}`]))
      expect([a, b].map(({ texts }) => texts.length)).toEqual(toldCounts.map((count) => count + 2))
      for (const [index, node] of [a, b].entries()) {
        expect((await read(node, { since: starts[index] ?? NOWHERE })).texts).toHaveLength(2)
      }
    }
  })

  it('has a message that is published again after its node was killed, where it had not come', async () => {
    const a = await startNode()
    const { child, port } = await forkNode([placeOf(a)])
    const proxy = new CutProxy(() => port)
    const cuttable = await proxy.start()
    onTestFinished(() => proxy.stop())
    const b = await startNode({ peers: [placeOf(a), cuttable] })
    await eventually(() => expect([a, b].map(({ broker }) => broker.linkCount)).toEqual([2, 2]))
    // The third node publishes while its link to one of the two is broken, and is then killed.
    proxy.cut()
    for (let index = 0; index < 50; index++) child.send(`${index}`)
    await eventually(() => expect(a.texts).toHaveLength(50))
    child.kill('SIGKILL')
    expect(b.texts.length).toBeLessThan(50)
    const since = b.broker.position() ?? NOWHERE
    const missingCount = 50 - b.texts.length
    const answers = await Promise.all(
      a.texts.map((text) =>
        a.broker.publish({ key: 'a', payload: Buffer.from(text), isBinary: false, messageId: messageIdOf(text) }),
      ),
    )
    expect(answers.every(({ isDuplicate }) => isDuplicate)).toBe(true)
    expect(b.texts).toEqual(a.texts)
    expect(a.texts).toHaveLength(50)
    expect((await read(b, { since })).texts).toHaveLength(missingCount)
    // Both tell a gap too: the node may have accepted messages that neither of them has seen.
    await eventually(() => expect([a.gaps, b.gaps]).toEqual([['broker-lost'], ['broker-lost']]), 3_000)
  })

  it('follows the rules of its own node, and both nodes warn when theirs differ', async () => {
    const a = await startNode()
    const other = await startNode({ ...historyOf('b.#=10'), peers: [placeOf(a)] })
    const without = await startNode({ ...historyOf(), peers: [placeOf(a), placeOf(other)] })
    await eventually(() => expect([a, other, without].map(({ broker }) => broker.linkCount)).toEqual([2, 2, 2]))
    for (const node of [a, other, without])
      expect(node.log.filter((line) => line.includes('other history rules'))).toHaveLength(2)
    const sinceA = a.broker.position() ?? NOWHERE
    const sinceOther = other.broker.position() ?? NOWHERE
    for (const { broker } of [a, other]) await broker.unbind('#')
    await publish(a, 'one')
    await publish(other, 'two', { key: 'b' })
    await publish(without, 'three', { key: 'b.c' })
    expect(await read(a, { since: sinceA })).toMatchObject({ texts: ['one', 'two', 'three'], gap: undefined })
    expect(await read(other, { since: sinceOther })).toMatchObject({ texts: ['two', 'three'], gap: 'no-history' })
    expect((await other.broker.read({ since: sinceOther }, ['b.#'])).gap).toBeUndefined()
    expect(without.texts).toEqual(['one', 'two', 'three'])
  })
})
