import { describe, expect, it, vi } from 'vitest'
import type { BrokerCapabilities, InboundMessage, MessageAttributes } from 'webmq-server/ports'
import { eventually } from '../transport/eventually.js'
import { type BrokerHarness, type Delivery, deliveredUpTo, NOWHERE, type RunningNode, text } from './harness.js'
import { messageIdOf } from './message-id-of.js'

/** The longest user id, in characters of three bytes. */
const LONG_USER_ID = '中'.repeat(85)
const ATTRIBUTES: readonly MessageAttributes[] = [
  { userId: 'ada', timeMs: 1_795_392_000_123, id: messageIdOf('shown') },
  { userId: LONG_USER_ID, timeMs: 0, traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` },
]

/** Attributes come with their message, and ephemeral messages stay out of the log. */
export function attributeTests(harness: () => BrokerHarness, expected: BrokerCapabilities): void {
  describe('attributes', () => {
    const startNodes = async (): Promise<readonly [RunningNode, RunningNode]> => {
      const publisher = await harness().startNode()
      const listener = expected.manyNodes ? await harness().startNode() : publisher
      for (const node of new Set([publisher, listener])) await node.bind('#')
      if (listener !== publisher) await linked(publisher, listener)
      return [publisher, listener]
    }

    it('brings attributes to every node, live and from the log, and none where none were given', async () => {
      const [publisher, listener] = await startNodes()
      const nodes = new Set([publisher, listener])
      const live = [...nodes].map((node) => recordAttributes(node))
      for (const attributes of ATTRIBUTES) {
        await publisher.broker.publish(text('a', 'text', { attributes }))
        await publisher.broker.publish(
          text('a', 'bytes', {
            attributes,
            isBinary: true,
            publisher: 7,
            messageId: messageIdOf(`id-${attributes.timeMs}`),
          }),
        )
      }
      await publisher.broker.publish(text('a', 'plain'))
      const wanted = [...ATTRIBUTES.flatMap((attributes) => [attributes, attributes]), undefined]
      await eventually(() => expect(live).toEqual(live.map(() => wanted)))
      if (!expected.history) return
      for (const { broker } of nodes) {
        const { messages } = await broker.read({ last: wanted.length }, ['a'])
        expect(messages.map(({ attributes }) => attributes)).toEqual(wanted)
      }
    })

    it('delivers an ephemeral message to live listeners of all nodes, and does not log it', async () => {
      const [publisher, listener] = await startNodes()
      const before = await publisher.broker.publish(text('a', 'before'))
      await deliveredUpTo(listener.sink, 'before')
      const attributes = { isEphemeral: true, userId: 'ada' } as const
      const accepted = await publisher.broker.publish(text('a', 'ephemeral', { attributes, publisher: 7 }))
      expect(accepted).toEqual({ isDuplicate: false })
      for (const { sink } of new Set([publisher, listener])) await deliveredUpTo(sink, 'ephemeral')
      const after = await publisher.broker.publish(text('a', 'after'))
      await deliveredUpTo(listener.sink, 'after')
      expect(deliveriesOf(listener).map(({ text }) => text)).toEqual(['before', 'ephemeral', 'after'])
      expect(deliveriesOf(listener).map(({ position }) => position !== undefined)).toEqual(
        expected.history ? [true, false, true] : [false, false, false],
      )
      for (const { sink, broker } of [publisher, listener])
        expect([sink.gaps, broker.stats().malformedCount]).toEqual([[], 0])
      if (!expected.history) return
      for (const { broker } of expected.sharedLog ? [publisher, listener] : [publisher]) {
        const { messages, gap, position } = await broker.read({ since: before.position ?? NOWHERE }, ['#'])
        expect({ texts: messages.map(textOf), gap, position }).toEqual({
          texts: ['after'],
          gap: undefined,
          position: after.position,
        })
      }
    })

    it('keeps the order of ephemeral messages, and drops a second one with the same id', async () => {
      const [publisher, listener] = await startNodes()
      const attributes = { isEphemeral: true } as const
      const texts = Array.from({ length: 200 }, (_, index) => `${index}`)
      const messageId = messageIdOf('once')
      await Promise.all(texts.map((body) => publisher.broker.publish(text('a', body, { attributes }))))
      await publisher.broker.publish(text('a', 'once', { attributes, messageId }))
      // The publisher may have moved to another node.
      await listener.broker.publish(text('a', 'twice', { attributes, messageId }))
      await listener.broker.publish(text('a', 'end', { attributes }))
      await deliveredUpTo(listener.sink, 'end')
      expect(deliveriesOf(listener).map(({ text }) => text)).toEqual([...texts, 'once', 'end'])
    })
  })
}

/** Without the messages of {@link linked}, which may come late. */
function deliveriesOf({ sink }: RunningNode): Delivery[] {
  return sink.deliveries.filter(({ key }) => key === 'a')
}

/** Each knows the bindings of the other. */
async function linked(one: RunningNode, other: RunningNode): Promise<void> {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    await eventually(async () => {
      await from.broker.publish(text('linked', 'linked'))
      expect(to.sink.texts).toContain('linked')
    })
  }
}

function recordAttributes({ sink }: RunningNode): (MessageAttributes | undefined)[] {
  const recorded: (MessageAttributes | undefined)[] = []
  vi.spyOn(sink, 'deliver').mockImplementation(({ key, attributes }) => {
    if (key === 'a') recorded.push(attributes)
    return true
  })
  return recorded
}

function textOf({ payload }: InboundMessage): string {
  return new TextDecoder().decode(payload)
}
