import { describe, expect, it } from 'vitest'
import type { BrokerCapabilities } from 'webmq-server/ports'
import { describeWhere, itWhere } from '../applies.js'
import { eventually } from '../transport/eventually.js'
import { type BrokerHarness, deliveredUpTo, deliveryOf, text } from './harness.js'
import { historyOf } from './history-of.js'
import { messageIdOf } from './message-id-of.js'

const COUNT = 200
/** Keys that begin with `log` are logged, others are not. */
const MIXED = historyOf('log.#=1000')
const NUMBERS = Array.from({ length: COUNT }, (_, number) => `${number}`)

/** What no node derives, though a client, a token or an embedder might write it. */
const OTHER_FORMS = ['', 'id', 'x'.repeat(21), 'x'.repeat(23), 'x'.repeat(300), `${'x'.repeat(21)} `, 'é'.repeat(22)]
const DANGEROUS_FORMS = ['消'.repeat(40), 'a\r\nNats-Rollup: all', 'a\u0000b'.repeat(8), `${'x'.repeat(22)}\n`]

/** Positions and duplicates in the answers to publishes: of logged and other keys, on one node and on several. */
export function messageIdTests(harness: () => BrokerHarness, expected: BrokerCapabilities): void {
  describe('message ids of another form', () => {
    it('are refused with E_MESSAGE_INVALID, and other messages go on unharmed', async () => {
      const node = await harness().startNode()
      const { broker, sink } = node
      await node.bind('#')
      for (const messageId of [...OTHER_FORMS, ...DANGEROUS_FORMS]) {
        // Two in a turn: a length that wraps harms the neighbour.
        const before = broker.publish(text('a', 'before'))
        const refused = async () => broker.publish(text('a', 'refused', { messageId }))
        await expect(refused()).rejects.toMatchObject({ code: 'E_MESSAGE_INVALID' })
        await before
      }
      await broker.publish(text('a', 'end', { messageId: messageIdOf('end') }))
      const texts = await deliveredUpTo(sink, 'end')
      expect(texts).toEqual([...[...OTHER_FORMS, ...DANGEROUS_FORMS].map(() => 'before'), 'end'])
    })
  })

  describeWhere(expected.history)('logged and other keys', () => {
    it('answers each logged publish of a turn with its position, and no other', async () => {
      const node = await harness().startNode(MIXED)
      const { broker, sink } = node
      await node.bind('#')
      const messages = NUMBERS.flatMap((number) => [
        text('log.a', `${number} logged`),
        text('live.a', `${number} live`),
        text('log.a', `${number} logged with id`, { messageId: messageIdOf(`log-${number}`) }),
        text('live.a', `${number} live with id`, { messageId: messageIdOf(`live-${number}`) }),
      ])
      const accepted = await Promise.all(messages.map((message) => broker.publish(message)))
      for (const [index, { position, isDuplicate }] of accepted.entries()) {
        expect(isDuplicate).toBe(false)
        expect(position !== undefined).toBe(messages[index]?.key === 'log.a')
      }
      await eventually(() => expect(sink.deliveries).toHaveLength(messages.length))
      const positionOf = new Map(sink.deliveries.map(({ text, position }) => [text, position]))
      for (const [index, { payload }] of messages.entries())
        expect(positionOf.get(new TextDecoder().decode(payload))).toEqual(accepted[index]?.position)
    })
  })

  describeWhere(expected.manyNodes)('message ids on several nodes', () => {
    it('are delivered once on each node, when two publish them at once', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      for (const node of [a, b]) await node.bind('#')
      const answers = await Promise.all(
        NUMBERS.map((number) =>
          Promise.all(
            [a, b].map(({ broker }) => broker.publish(text('a', number, { messageId: messageIdOf(number) }))),
          ),
        ),
      )
      for (const { broker } of [a, b]) await broker.publish(text('a', 'end'))
      for (const { sink } of [a, b]) {
        await eventually(() => expect(sink.texts.filter((each) => each === 'end')).toHaveLength(2))
        expect(sink.texts.filter((each) => each !== 'end').sort()).toEqual([...NUMBERS].sort())
      }
      if (!expected.sharedLog) return
      for (const [first, second] of answers) {
        expect([first?.isDuplicate, second?.isDuplicate].sort()).toEqual([false, true])
        expect(first?.position).toEqual(second?.position)
      }
      const { messages } = await a.broker.read({ last: 3 * COUNT }, ['#'])
      const positionOf = new Map(messages.map(deliveryOf).map(({ text, position }) => [text, position]))
      for (const [index, number] of NUMBERS.entries())
        expect(answers[index]?.[0]?.position).toEqual(positionOf.get(number))
    })

    itWhere(expected.sharedLog)('are answered with the first position by a node that has the log', async () => {
      const [a, b] = [await harness().startNode(), await harness().startNode()]
      await b.bind('#')
      const messageIds = ['first', 'second'].map(messageIdOf)
      for (const messageId of messageIds) {
        const first = await a.broker.publish(text('a', messageId, { messageId }))
        await deliveredUpTo(b.sink, messageId)
        const { acceptedCount } = b.broker.stats()
        const again = await b.broker.publish(text('a', 'again', { messageId }))
        expect(again).toEqual({ position: first.position, isDuplicate: true })
        // Nothing was sent to the broker.
        expect(b.broker.stats().acceptedCount).toBe(acceptedCount)
      }
      await b.broker.publish(text('a', 'end'))
      expect(await deliveredUpTo(b.sink, 'end')).toEqual([...messageIds, 'end'])
    })

    it('are delivered once on each node where keys are not logged, also on one that has not had the first', async () => {
      const [a, b, c] = [
        await harness().startNode(MIXED),
        await harness().startNode(MIXED),
        await harness().startNode(MIXED),
      ]
      for (const node of [a, b]) await node.bind('live.*')
      await a.broker.publish(text('live.a', 'first', { messageId: messageIdOf('id') }))
      for (const { sink } of [a, b]) await deliveredUpTo(sink, 'first')
      await c.bind('live.*')
      await a.broker.publish(text('live.a', 'second'))
      for (const { sink } of [a, b, c]) await deliveredUpTo(sink, 'second')
      await b.broker.publish(text('live.a', 'again', { messageId: messageIdOf('id') }))
      expect(await a.broker.publish(text('live.a', 'third', { messageId: messageIdOf('id') }))).toEqual({
        isDuplicate: true,
      })
      await b.broker.publish(text('live.a', 'end'))
      expect(await deliveredUpTo(a.sink, 'end')).toEqual(['first', 'second', 'end'])
      expect(await deliveredUpTo(b.sink, 'end')).toEqual(['first', 'second', 'end'])
      // It knows neither that there was another copy nor that this one is late.
      expect(await deliveredUpTo(c.sink, 'end')).toEqual(['second', 'again', 'end'])
    })
  })
}
