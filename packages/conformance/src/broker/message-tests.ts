import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Broker, BrokerCapabilities } from 'webmq-server/ports'
import { itWhere } from '../applies.js'
import { eventually } from '../transport/eventually.js'
import {
  type BrokerHarness,
  type DeliveryRecorder,
  deliveredUpTo,
  deliveryOf,
  type RunningNode,
  text,
} from './harness.js'
import { messageIdOf } from './message-id-of.js'

const encoder = new TextEncoder()
/** Sizes around the limits of length fields, up to the largest payload that a server accepts by default. */
const SIZES_BYTES = [0, 1, 2, 125, 126, 127, 4_095, 4_096, 65_535, 65_536, 131_072, 262_144]
const MANY = 5_000

/** Messages arrive as published. */
export function messageTests(harness: () => BrokerHarness, expected: BrokerCapabilities): void {
  describe('messages', () => {
    let node: RunningNode
    let broker: Broker
    let sink: DeliveryRecorder

    beforeEach(async () => {
      node = await harness().startNode()
      ;({ broker, sink } = node)
      await node.bind('#')
    })

    it('hands back bytes, kind and publisher untouched', async () => {
      const received: { bytes: number[]; isBinary: boolean; publisher: number | undefined }[] = []
      vi.spyOn(sink, 'deliver').mockImplementation(({ payload, isBinary, publisher }) => {
        received.push({ bytes: [...payload], isBinary, publisher })
        return true
      })
      const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
      await broker.publish({ key: 'm.bytes', payload: bytes, isBinary: true, publisher: 42 })
      await broker.publish({ key: 'm.empty', payload: new Uint8Array(0), isBinary: true })
      await broker.publish(text('m.json', '{"big":9007199254740993 }', { publisher: 0 }))
      await broker.publish(text('m.last', '1', { publisher: 4_294_967_295 }))
      await eventually(() => expect(received).toHaveLength(4))
      expect(received).toEqual([
        { bytes: [...bytes], isBinary: true, publisher: 42 },
        { bytes: [], isBinary: true, publisher: undefined },
        { bytes: [...encoder.encode('{"big":9007199254740993 }')], isBinary: false, publisher: 0 },
        { bytes: [0x31], isBinary: false, publisher: 4_294_967_295 },
      ])
    })

    it('carries payloads of every size, as text and as bytes', async () => {
      const received: { byteCount: number; isBinary: boolean; isIntact: boolean }[] = []
      vi.spyOn(sink, 'deliver').mockImplementation(({ payload, isBinary }) => {
        const isIntact = payload.every((byte, at) => byte === patternByte(at, isBinary))
        received.push({ byteCount: payload.length, isBinary, isIntact })
        return true
      })
      const sent = SIZES_BYTES.flatMap((byteCount) => [
        { byteCount, isBinary: true },
        { byteCount, isBinary: false },
      ])
      for (const { byteCount, isBinary } of sent) {
        const payload = Uint8Array.from({ length: byteCount }, (_, at) => patternByte(at, isBinary))
        await broker.publish({ key: 'a', payload, isBinary })
      }
      await eventually(() => expect(received).toHaveLength(sent.length))
      expect(received).toEqual(sent.map((message) => ({ ...message, isIntact: true })))
    })

    it('has copied the payload when publish returns', async () => {
      const payload = encoder.encode('before')
      const accepted = broker.publish({ key: 'a', payload, isBinary: false })
      payload.fill(0x78)
      await accepted
      expect(await deliveredUpTo(sink, 'before')).toEqual(['before'])
      if (!expected.history) return
      const { messages } = await broker.read({ last: 1 }, ['a'])
      expect(messages.map((message) => deliveryOf(message).text)).toEqual(['before'])
    })

    it('keeps the order of the calls of one node, within a key and over all', async () => {
      const texts = Array.from({ length: MANY }, (_, index) => `${index}`)
      await Promise.all(texts.map((body, index) => broker.publish(text(`key.${index % 3}`, body))))
      expect(await deliveredUpTo(sink, texts.at(-1) ?? '')).toEqual(texts)
    })

    it('publishes a batch as if one by one', async (context) => {
      if (broker.publishBatch === undefined) return context.skip('this broker has no publishBatch')
      const batch = Array.from({ length: 300 }, (_, index) => {
        const payload = encoder.encode(index % 50 === 0 ? 'x'.repeat(5_000) : `batch ${index}`)
        const message = { key: index % 40 < 30 ? 'batch' : `batch.${index % 2}`, payload, isBinary: index % 3 === 0 }
        return index % 70 === 69 ? { ...message, messageId: messageIdOf(`id-${Math.floor(index / 140)}`) } : message
      })
      const accepted = await broker.publishBatch(batch)
      const ids = new Set<string>()
      const isDuplicate = batch.map((message) => {
        if (!('messageId' in message)) return false
        const isKnown = ids.has(message.messageId)
        ids.add(message.messageId)
        return isKnown
      })
      expect(accepted.map((each) => each.isDuplicate)).toEqual(isDuplicate)
      const wanted = batch.filter((_, index) => isDuplicate[index] === false)
      await broker.publish(text('batch.end', 'end'))
      await deliveredUpTo(sink, 'end')
      const positions = accepted.filter((each) => !each.isDuplicate).map(({ position }) => position)
      expect(sink.deliveries.slice(0, -1)).toEqual(
        wanted.map((message, index) => ({ ...deliveryOf(message), position: positions[index] })),
      )
      expect(await broker.publishBatch([])).toEqual([])
      expect(broker.stats()).toMatchObject({ acceptedCount: wanted.length + 1, pendingCount: 0, pendingBytes: 0 })
    })

    itWhere(expected.confirms)('resolves a publish with what was accepted, listened to or not', async () => {
      await node.unbind('#')
      const accepted = await broker.publish(text('nobody.listens', 'one'))
      expect(accepted.isDuplicate).toBe(false)
      expect(broker.stats()).toMatchObject({ acceptedCount: 1, pendingCount: 0, pendingBytes: 0 })
      if (!expected.history) return
      const { messages } = await broker.read({ last: 1 }, ['#'])
      expect(messages[0]?.position).toEqual(accepted.position)
    })

    it('delivers a message id once within its window, also while the first is under way', async () => {
      const both = await Promise.all([
        broker.publish(text('a', 'first', { messageId: messageIdOf('id-1') })),
        broker.publish(text('a', 'meanwhile', { messageId: messageIdOf('id-1') })),
      ])
      const again = await broker.publish(text('a', 'again', { messageId: messageIdOf('id-1') }))
      const other = await broker.publish(text('a', 'other', { messageId: messageIdOf('id-2') }))
      expect([...both, again, other].map(({ isDuplicate }) => isDuplicate)).toEqual([false, true, true, false])
      expect(again.position).toEqual(both[0]?.position)
      expect(await deliveredUpTo(sink, 'other')).toEqual(['first', 'other'])
    })

    it('refuses to publish once stopped, and stops twice without harm', async () => {
      await broker.stop()
      await broker.stop()
      await expect(async () => broker.publish(text('a', 'late'))).rejects.toMatchObject({
        code: 'E_BROKER_UNAVAILABLE',
      })
    })

    it('delivers again after a stop and a start', async () => {
      await broker.stop()
      await node.start()
      await node.bind('again')
      await broker.publish(text('again', 'again'))
      expect(await deliveredUpTo(sink, 'again')).toEqual(['again'])
      expect(sink.statuses).toEqual(['up', 'down', 'up'])
    })
  })
}

/** Text must stay ASCII; bytes need not. */
function patternByte(at: number, isBinary: boolean): number {
  return isBinary ? (at * 31) % 256 : 0x61 + (at % 26)
}
