import { expect, it } from 'vitest'
import type { BrokerCapabilities } from 'webmq-server/ports'
import { describeWhere, itWhere } from '../applies.js'
import { eventually } from '../transport/eventually.js'
import { type BrokerHarness, deliveredUpTo, type RunningNode, text } from './harness.js'

/** Asking an operator's tool what is left may take seconds each time. */
const RESIDUE_TIMEOUT_MS = 40_000
const MESSAGES_PER_NODE = 500
const KEYS = ['order.0', 'order.1', 'order.2']

/** Several nodes on one broker. */
export function nodeTests(harness: () => BrokerHarness, expected: BrokerCapabilities): void {
  describeWhere(!expected.manyNodes)('nodes', () => {
    it('carries nothing to another node, and says so', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      await b.bind('#')
      await a.broker.publish(text('a', 'from a'))
      await b.broker.publish(text('a', 'from b'))
      expect(await deliveredUpTo(b.sink, 'from b')).toEqual(['from b'])
    })
  })

  describeWhere(expected.manyNodes)('nodes', () => {
    it('carries a message to every node that wants it, and to no other', async () => {
      const [a, b, c] = await startNodes(harness(), 3)
      await a.bind('to.a.#')
      await b.bind('*.b')
      await b.bind('to.*')
      await c.bind('end')
      await a.broker.publish(text('to.b', 'a to b'))
      await b.broker.publish(text('to.a.x', 'b to a'))
      await c.broker.publish(text('to.a', 'c to both'))
      await c.broker.publish(text('end', 'end'))
      expect(await deliveredUpTo(a.sink, 'c to both')).toEqual(['b to a', 'c to both'])
      expect(await deliveredUpTo(b.sink, 'c to both')).toEqual(['a to b', 'c to both'])
      expect(await deliveredUpTo(c.sink, 'end')).toEqual(['end'])
    })

    it('costs no traffic for what nobody on a node listens to', async () => {
      const [publisher, listener] = await startNodes(harness(), 2)
      await listener.bind('wanted.exact')
      await listener.bind('wanted.end')
      await listener.bind('unbound')
      await listener.unbind('unbound')
      for (let index = 0; index < 200; index++)
        await publisher.broker.publish(text(`unwanted.${index % 7}`, 'unwanted'))
      await publisher.broker.publish(text('unbound', 'unbound'))
      await publisher.broker.publish(text('wanted.exact', 'wanted'))
      await publisher.broker.publish(text('wanted.end', 'end'))
      expect(await deliveredUpTo(listener.sink, 'end')).toEqual(['wanted', 'end'])
      // Every node gets the complete log.
      if (expected.history) return
      expect(listener.broker.stats()).toMatchObject({ receivedCount: 2, surplusCount: 0 })
      expect(publisher.broker.stats()).toMatchObject({ receivedCount: 0, acceptedCount: 203 })
    })

    itWhere(expected.queueGroups)(
      'carries what nodes say to one node in order, behind what they said to all',
      async () => {
        const [a, b, c] = await startNodes(harness(), 3)
        for (const [node, name] of [
          [b, 'b'],
          [c, 'c'],
        ] as const) {
          await node.bind('$nodes')
          await node.bind(`$nodes.${name}`)
        }
        for (let index = 0; index < 20; index++) {
          void a.broker.publish(text('$nodes', `all ${index}`))
          void a.broker.publish(text('$nodes.b', `b ${index}`))
        }
        await a.broker.publish(text('$nodes', 'end'))
        const all = Array.from({ length: 20 }, (_, index) => index)
        const forB = all.flatMap((index) => [`all ${index}`, `b ${index}`])
        expect(await deliveredUpTo(b.sink, 'end')).toEqual([...forB, 'end'])
        expect(await deliveredUpTo(c.sink, 'end')).toEqual([...all.map((index) => `all ${index}`), 'end'])
      },
    )

    it('hands back the publisher on the publishing node alone', async () => {
      const [a, b] = await startNodes(harness(), 2)
      for (const node of [a, b]) await node.bind('#')
      await a.broker.publish(text('a', 'one', { publisher: 5 }))
      await deliveredUpTo(a.sink, 'one')
      await deliveredUpTo(b.sink, 'one')
      expect([a, b].map(({ sink }) => sink.deliveries[0]?.publisher)).toEqual([5, undefined])
    })

    it('keeps the order of each publisher within a key, on every node, while all publish at once', async () => {
      const nodes = await startNodes(harness(), 3)
      for (const node of nodes) await node.bind('order.#')
      await Promise.all(
        nodes.flatMap(({ broker }, publisher) =>
          Array.from({ length: MESSAGES_PER_NODE }, (_, index) =>
            broker.publish(text(KEYS[index % KEYS.length] ?? '', `${publisher} ${index}`)),
          ),
        ),
      )
      for (const { sink } of nodes) {
        await eventually(() => expect(sink.deliveries).toHaveLength(nodes.length * MESSAGES_PER_NODE))
        for (const [publisher] of nodes.entries()) {
          for (const key of KEYS) {
            const numbers = sink.deliveries
              .filter((delivery) => delivery.key === key && delivery.text.startsWith(`${publisher} `))
              .map((delivery) => Number(delivery.text.split(' ')[1]))
            expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
          }
        }
      }
      if (!expected.ordered) return
      const [first, ...others] = nodes.map(({ sink }) => KEYS.map((key) => textsOf(sink.deliveries, key)))
      for (const other of others) expect(other).toEqual(first)
    })

    it('leaves nothing behind when nodes have stopped', async () => {
      const { system } = harness()
      const nodes = await startNodes(harness(), 2)
      for (const node of nodes) for (const pattern of ['a', 'b.*', 'c.#']) await node.bind(pattern)
      if (system.residue !== undefined) expect(await system.residue()).not.toEqual([])
      await harness().stopNodes()
      await eventually(async () => expect((await system.residue?.()) ?? []).toEqual([]), RESIDUE_TIMEOUT_MS)
    })

    it('goes on for the others when a node stops', async () => {
      const [a, b, c] = await startNodes(harness(), 3)
      await a.bind('#')
      await c.bind('#')
      await c.broker.stop()
      await b.broker.publish(text('a', 'one'))
      expect(await deliveredUpTo(a.sink, 'one')).toEqual(['one'])
      expect([...a.sink.gaps, ...b.sink.gaps]).toEqual([])
    })
  })
}

async function startNodes(harness: BrokerHarness, count: 2): Promise<[RunningNode, RunningNode]>
async function startNodes(harness: BrokerHarness, count: 3): Promise<[RunningNode, RunningNode, RunningNode]>
async function startNodes(harness: BrokerHarness, count: number): Promise<RunningNode[]> {
  const nodes: RunningNode[] = []
  for (let index = 0; index < count; index++) nodes.push(await harness.startNode())
  return nodes
}

function textsOf(deliveries: RunningNode['sink']['deliveries'], key: string): string[] {
  return deliveries.filter((delivery) => delivery.key === key).map((delivery) => delivery.text)
}
