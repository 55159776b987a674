import { beforeEach, expect, it } from 'vitest'
import type { Broker, BrokerCapabilities, Position } from 'webmq-server/ports'
import { formatPosition } from 'webmq-server/ports'
import { describeWhere, itWhere } from '../applies.js'
import { eventually } from '../transport/eventually.js'
import {
  type BrokerHarness,
  type DeliveryRecorder,
  deliveredUpTo,
  deliveryOf,
  NOWHERE,
  type RunningNode,
  text,
} from './harness.js'
import { historyOf } from './history-of.js'
import { messageIdOf } from './message-id-of.js'

/** The content of a log, and how it joins live messages. */
export function historyTests(harness: () => BrokerHarness, expected: BrokerCapabilities): void {
  describeWhere(expected.history)('history', () => {
    let node: RunningNode
    let broker: Broker
    let sink: DeliveryRecorder

    beforeEach(async () => {
      node = await harness().startNode()
      ;({ broker, sink } = node)
    })

    const read = async (...range: Parameters<Broker['read']>) => {
      const result = await broker.read(...range)
      const messages = result.messages.map(deliveryOf)
      return { ...result, messages, texts: messages.map(({ text }) => text) }
    }

    const publishAll = async (...bodies: string[]): Promise<Position[]> => {
      const positions: Position[] = []
      for (const body of bodies) positions.push((await broker.publish(text(`key.${body}`, body))).position ?? NOWHERE)
      return positions
    }

    it('gives every message a position of its own, in order', async () => {
      await node.bind('#')
      const start = await broker.position()
      const positions = await publishAll('a', 'b', 'c')
      await deliveredUpTo(sink, 'c')
      expect(sink.deliveries.map(({ position }) => position)).toEqual(positions)
      const offsets = [start ?? NOWHERE, ...positions].map(({ offset }) => offset)
      expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => a - b))
      for (const position of positions)
        expect(formatPosition(position)).toMatch(/^[\w:.-]{1,52}:[0-9a-z]{1,11}\.(?!AAAAA)[\w-]{5}$/)
      expect(await broker.position()).toEqual(positions.at(-1))
    })

    it('says which keys are logged, and those alone get a position', async () => {
      const { broker } = await harness().startNode(historyOf('logged.#=100', 'also.*=100'))
      for (const key of ['logged', 'logged.a.b', 'also.a', 'also.a.b', 'other', 'a.logged']) {
        const { position } = await broker.publish(text(key, 'x'))
        expect([key, broker.logs?.(key)]).toEqual([key, position !== undefined])
      }
      expect(['logged.a', '$logged', 'other'].map((key) => broker.logs?.(key))).toEqual([true, false, false])
    })

    it('delivers in the order of the log, over all keys and bindings', async () => {
      for (const pattern of ['key.0', '*.1', 'key.2.#']) await node.bind(pattern)
      const texts = Array.from({ length: 99 }, (_, index) => String(index))
      await Promise.all(texts.map((body, index) => broker.publish(text(`key.${index % 3}`, body))))
      await eventually(() => expect(sink.deliveries).toHaveLength(99))
      const { messages } = await read({ last: 99 }, ['#'])
      expect(sink.deliveries.map(({ position }) => position)).toEqual(messages.map(({ position }) => position))
    })

    it('reads exactly what came after a position', async () => {
      const start = (await broker.position()) ?? NOWHERE
      const positions = await publishAll('a', 'b', 'c')
      expect((await read({ since: start }, ['#'])).texts).toEqual(['a', 'b', 'c'])
      const [first = NOWHERE, , last = NOWHERE] = positions
      const result = await read({ since: first }, ['#'])
      expect(result.messages.map(({ key, text, position }) => ({ key, text, position }))).toEqual([
        { key: 'key.b', text: 'b', position: positions[1] },
        { key: 'key.c', text: 'c', position: positions[2] },
      ])
      expect(result.gap).toBeUndefined()
      expect(result.position).toEqual(last)
      expect(await read({ since: last }, ['#'])).toMatchObject({ texts: [], position: last })
    })

    it('reads the newest messages, in order', async () => {
      await publishAll('a', 'b', 'c')
      expect((await read({ last: 2 }, ['#'])).texts).toEqual(['b', 'c'])
      expect((await read({ last: 1_000 }, ['#'])).texts).toEqual(['a', 'b', 'c'])
      expect((await read({ last: 0 }, ['#'])).texts).toEqual([])
    })

    it('reads what any of the patterns matches, once', async () => {
      const start = (await broker.position()) ?? NOWHERE
      const [, , , last = NOWHERE] = await publishAll('a', 'b', 'c', 'd')
      expect((await read({ since: start }, ['key.a', '*.c', 'key.c', '#.c'])).texts).toEqual(['a', 'c'])
      expect((await read({ last: 1 }, ['key.a', 'key.b'])).texts).toEqual(['b'])
      expect(await read({ since: start }, ['nothing'])).toMatchObject({ texts: [], position: last })
    })

    it('pages back, without a hole or a second copy while others publish', async () => {
      await Promise.all(Array.from({ length: 25 }, (_, index) => broker.publish(text(`key.${index % 2}`, `${index}`))))
      const wanted = (await read({ last: 100 }, ['key.0'])).messages
      let page = await read({ last: 5 }, ['key.0'])
      const found = [...page.messages]
      while (page.messages.length === 5) {
        await publishAll('0')
        page = await read({ last: 5, before: page.messages[0]?.position ?? NOWHERE }, ['key.0'])
        found.unshift(...page.messages)
      }
      expect(found).toEqual(wanted)
      expect(page).not.toHaveProperty('gap')
      expect(page).not.toHaveProperty('isCut')
      const foreign = await read({ last: 5, before: { epoch: 'another-epoch', offset: 9, fingerprint: 1 } }, ['key.0'])
      expect(foreign).toMatchObject({ texts: [], gap: 'epoch-changed' })
      const last = wanted.at(-1)?.position ?? NOWHERE
      await expect(read({ last: 1, before: { ...last, offset: last.offset + 1_000 } }, ['#'])).rejects.toMatchObject({
        code: 'E_POSITION_INVALID',
      })
    })

    it('keeps bytes and kind', async () => {
      await broker.publish({ key: 'a', payload: Uint8Array.of(0, 255, 10), isBinary: true })
      const { messages } = await broker.read({ last: 1 }, ['a'])
      expect(messages.map(({ payload, isBinary }) => ({ bytes: [...payload], isBinary }))).toEqual([
        { bytes: [0, 255, 10], isBinary: true },
      ])
    })

    it('loses nothing between a read and what is delivered live', async () => {
      await node.bind('#')
      await publishAll('a', 'b')
      await deliveredUpTo(sink, 'b')
      const before = (await read({ last: 10 }, ['#'])).texts
      const { position } = await read({ last: 0 }, ['#'])
      await publishAll('c', 'd')
      await deliveredUpTo(sink, 'd')
      expect([...before, ...(await read({ since: position }, ['#'])).texts]).toEqual(sink.texts)
    })

    it('says gap for a position of another epoch', async () => {
      const [, last] = await publishAll('a', 'b')
      const result = await read({ since: { epoch: 'another-epoch', offset: 1, fingerprint: 1 } }, ['#'])
      // A log that all nodes share has restarted, so all of it came after the position. A node's own log may have older
      // messages.
      const texts = expected.sharedLog ? ['a', 'b'] : []
      expect(result).toMatchObject({ gap: 'epoch-changed', texts, position: last, isPartial: false })
    })

    it('says gap for a position where something else stood, also before it and without a fingerprint', async () => {
      const [first = NOWHERE, second = NOWHERE] = await publishAll('a', 'b', 'c')
      expect(await read({ since: second }, ['#'])).toMatchObject({ texts: ['c'] })
      expect(await read({ since: second }, ['#'])).not.toHaveProperty('gap')
      expect(await read({ before: second }, ['#'])).not.toHaveProperty('gap')
      for (const fingerprint of [0, 1, first.fingerprint]) {
        const another = { ...second, fingerprint }
        expect(await read({ since: another }, ['#'])).toMatchObject({ texts: ['c'], gap: 'broker-lost' })
        expect(await read({ before: another }, ['#'])).toMatchObject({ gap: 'broker-lost' })
      }
    })

    it('refuses a position of its epoch that nobody has given', async () => {
      const [last = NOWHERE] = await publishAll('a')
      const since = { ...last, offset: last.offset + 1_000 }
      await expect(read({ since }, ['#'])).rejects.toMatchObject({ code: 'E_POSITION_INVALID' })
      await publishAll('b')
      await expect(read({ since }, ['key.a'])).rejects.toMatchObject({ code: 'E_POSITION_INVALID' })
    })

    it(expected.durable ? 'keeps its log over a restart' : 'says gap after a restart that lost its log', async () => {
      const [first = NOWHERE] = await publishAll('a', 'b')
      await broker.stop()
      await node.start()
      await publishAll('c')
      const result = await read({ since: first }, ['#'])
      if (expected.durable) expect(result).toMatchObject({ texts: ['b', 'c'] })
      else expect(result).toMatchObject({ texts: expected.sharedLog ? ['c'] : [], gap: 'epoch-changed' })
    })
  })

  describeWhere(expected.history && expected.manyNodes)('history of several nodes', () => {
    const read = async (broker: Broker, ...range: Parameters<Broker['read']>) => {
      const { messages } = await broker.read(...range)
      return messages.map(deliveryOf).map(({ text, position }) => ({ text, position }))
    }

    itWhere(expected.sharedLog)(
      'has one order and the same positions on all nodes, while all publish at once',
      async () => {
        const nodes = [await harness().startNode(), await harness().startNode(), await harness().startNode()]
        for (const node of nodes) await node.bind('#')
        const bodies = Array.from({ length: 200 }, (_, index) => String(index))
        await Promise.all(
          nodes.flatMap(({ broker }, node) =>
            bodies.map((body, index) => broker.publish(text(`key.${index % 3}`, `${node} ${body}`))),
          ),
        )
        const count = nodes.length * bodies.length
        for (const { sink } of nodes) await eventually(() => expect(sink.deliveries).toHaveLength(count))
        const [first, ...others] = nodes.map(({ sink }) =>
          sink.deliveries.map(({ text, position }) => ({ text, position })),
        )
        for (const other of others) expect(other).toEqual(first)
        for (const { broker } of nodes) expect(await read(broker, { last: count }, ['#'])).toEqual(first)
      },
    )

    itWhere(expected.sharedLog)('goes on at another node from a position that the first has given', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      const { position: since = NOWHERE } = await a.broker.publish(text('a', 'one'))
      const { position: second } = await a.broker.publish(text('a', 'two'))
      const { position: third } = await b.broker.publish(text('a', 'three'))
      for (const { broker } of [a, b]) {
        await eventually(async () => expect(await read(broker, { since }, ['#'])).toHaveLength(2))
        const { messages, gap } = await broker.read({ since }, ['#'])
        expect(gap).toBeUndefined()
        expect(messages.map(deliveryOf).map(({ text, position }) => ({ text, position }))).toEqual([
          { text: 'two', position: second },
          { text: 'three', position: third },
        ])
      }
    })

    itWhere(expected.sharedLog)('is found by a node that starts later, while another one still runs', async () => {
      const { broker } = await harness().startNode()
      for (const body of ['a', 'b', 'c']) await broker.publish(text('key', body))
      const before = await read(broker, { last: 10 }, ['#'])
      const later = await harness().startNode()
      expect(await read(later.broker, { last: 10 }, ['#'])).toEqual(before)
      expect(later.sink.gaps).toEqual([])
    })

    itWhere(!expected.sharedLog)('has a log on each node of what all nodes publish, whoever listens', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      const starts = [a, b].map(async ({ broker }) => (await broker.position()) ?? NOWHERE)
      const [sinceA = NOWHERE, sinceB = NOWHERE] = await Promise.all(starts)
      expect(sinceA.epoch).not.toBe(sinceB.epoch)
      for (const body of ['1', '2', '3']) await a.broker.publish(text('a', body))
      for (const body of ['4', '5', '6']) await b.broker.publish(text('b', body))
      for (const [{ broker }, since] of [
        [a, sinceA],
        [b, sinceB],
      ] as const) {
        await eventually(async () => expect(await read(broker, { since }, ['#'])).toHaveLength(6))
        const { messages, gap } = await broker.read({ since }, ['#'])
        expect(gap).toBeUndefined()
        expect(messages.map((message) => deliveryOf(message).text)).toEqual(['1', '2', '3', '4', '5', '6'])
      }
    })

    itWhere(!expected.sharedLog)('says gap for a position of another node, and gives nothing twice', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      const { position: since = NOWHERE } = await a.broker.publish(text('a', 'one'))
      await a.broker.publish(text('a', 'two'))
      await eventually(async () => expect(await read(b.broker, { last: 2 }, ['#'])).toHaveLength(2))
      const result = await b.broker.read({ since }, ['#'])
      expect(result).toEqual({
        messages: [],
        gap: 'epoch-changed',
        position: await b.broker.position(),
        isPartial: false,
      })
    })

    it('has a message id once, whichever nodes it was published to', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      await b.bind('#')
      await a.broker.publish(text('a', 'first', { messageId: messageIdOf('id') }))
      await b.broker.publish(text('a', 'again', { messageId: messageIdOf('id') }))
      await b.broker.publish(text('a', 'end'))
      expect(await deliveredUpTo(b.sink, 'end')).toEqual(['first', 'end'])
      for (const { broker } of [a, b])
        await eventually(async () =>
          expect((await read(broker, { last: 10 }, ['#'])).map(({ text }) => text)).toEqual(['first', 'end']),
        )
    })
  })

  describeWhere(!expected.history)('without history', () => {
    it('has no positions and reads nothing', async () => {
      const { broker } = await harness().startNode()
      expect(await broker.position()).toBeUndefined()
      expect(await broker.publish(text('a', 'a'))).toEqual({ isDuplicate: false })
      expect([broker.logs?.('a') ?? false, broker.retains?.('a') ?? false]).toEqual([false, false])
      await expect(async () => broker.read({ last: 1 }, ['#'])).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    })
  })
}
