import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { GapReason } from 'webmq-client/protocol'
import type {
  Broker,
  BrokerCapabilities,
  BrokerSink,
  BrokerStatus,
  InboundMessage,
  OutboundMessage,
  Position,
} from '../broker.js'
import { formatPosition } from '../position.js'

/** A delivery, with its payload copied: a broker lends it only for the time of the call. */
interface Delivery {
  readonly key: string
  readonly text: string
  readonly isBinary: boolean
  readonly position: Position | undefined
  readonly origin: number | undefined
}

/** A broker sink that remembers. */
class RecordingSink implements BrokerSink {
  readonly deliveries: Delivery[] = []
  readonly statuses: BrokerStatus[] = []
  readonly gaps: GapReason[] = []

  get texts(): string[] {
    return this.deliveries.map(({ text }) => text)
  }

  deliver(message: InboundMessage): void {
    this.deliveries.push(deliveryOf(message))
  }

  status(status: BrokerStatus): void {
    this.statuses.push(status)
  }

  gap(reason: GapReason): void {
    this.gaps.push(reason)
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Stands for a position that is missing, and is none of any broker. */
const NOWHERE: Position = { epoch: 'nowhere', offset: 0 }

function deliveryOf({ key, payload, isBinary, position, origin }: InboundMessage): Delivery {
  return { key, text: decoder.decode(payload), isBinary, position, origin }
}

function text(key: string, text: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
  return { key, payload: encoder.encode(text), isBinary: false, ...more }
}

/**
 * The tests that every broker passes. They switch by what the broker says it can do, and hold it to every word of it.
 *
 * @param name Names the broker in the report.
 * @param createBroker Makes a node on a log of its own, or on one that nobody else uses meanwhile; not started. Should
 *   keep at least 1,000 small messages and remember 1,000 message ids for a minute.
 * @param expected What the broker must say it can do.
 */
export function brokerSuite(
  name: string,
  createBroker: () => Broker | Promise<Broker>,
  expected: BrokerCapabilities,
): void {
  describe(`broker ${name}`, () => {
    let broker: Broker
    let sink: RecordingSink

    beforeEach(async () => {
      broker = await createBroker()
      sink = new RecordingSink()
      await broker.start(sink)
    })

    afterEach(async () => {
      await broker.stop()
    })

    /** Waits for the last of what was published, so that what should not come had its chance. */
    const deliveredUpTo = async (last: string): Promise<string[]> => {
      await vi.waitFor(() => expect(sink.texts.at(-1)).toBe(last), { timeout: 5_000 })
      return sink.texts
    }

    const read = async (...range: Parameters<Broker['read']>) => {
      const result = await broker.read(...range)
      return {
        ...result,
        messages: result.messages.map(deliveryOf),
        texts: result.messages.map((m) => deliveryOf(m).text),
      }
    }

    it('says what it can do', () => {
      expect(broker.capabilities).toEqual(expected)
      expect(broker.name).not.toBe('')
    })

    it('is up once it has started', () => {
      expect(sink.statuses.at(-1)).toBe('up')
    })

    describe('live', () => {
      it('delivers what its bindings match and nothing else', async () => {
        for (const pattern of ['exact.key', 'one.*', 'more.#', '*..empty']) await broker.bind(pattern)
        const wanted = ['exact.key', 'one.word', 'one.', 'more', 'more.a.b', '..empty', 'end.of', 'one.end']
        await broker.bind('end.of')
        for (const key of ['exact', 'exact.key.longer', 'one', 'one.two.three', 'amore', 'x.empty']) {
          await broker.publish(text(key, `unwanted ${key}`))
        }
        for (const key of wanted) await broker.publish(text(key, key))
        expect(await deliveredUpTo('one.end')).toEqual(wanted)
        expect(sink.deliveries.map(({ key }) => key)).toEqual(wanted)
      })

      it('delivers a message once, however many bindings match it', async () => {
        for (const pattern of ['a.b', 'a.*', '#', 'a.#']) await broker.bind(pattern)
        await broker.publish(text('a.b', 'one'))
        await broker.publish(text('a.b', 'two'))
        expect(await deliveredUpTo('two')).toEqual(['one', 'two'])
      })

      it('counts bindings: the last unbind ends the interest', async () => {
        await broker.bind('end')
        await broker.bind('a.*')
        await broker.bind('a.*')
        await broker.unbind('a.*')
        await broker.publish(text('a.b', 'still bound'))
        await broker.unbind('a.*')
        await broker.publish(text('a.b', 'no longer bound'))
        await broker.publish(text('end', 'end'))
        expect(await deliveredUpTo('end')).toEqual(['still bound', 'end'])
      })

      it('hands back bytes, kind and origin untouched', async () => {
        await broker.bind('#')
        const received: { bytes: number[]; isBinary: boolean; origin: number | undefined }[] = []
        vi.spyOn(sink, 'deliver').mockImplementation(({ payload, isBinary, origin }) => {
          received.push({ bytes: [...payload], isBinary, origin })
        })
        const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
        await broker.publish({ key: 'bytes', payload: bytes, isBinary: true, origin: 42 })
        await broker.publish({ key: 'empty', payload: new Uint8Array(0), isBinary: true })
        await broker.publish(text('json', '{"big":9007199254740993 }', { origin: 0 }))
        await vi.waitFor(() => expect(received).toHaveLength(3))
        expect(received).toEqual([
          { bytes: [...bytes], isBinary: true, origin: 42 },
          { bytes: [], isBinary: true, origin: undefined },
          { bytes: [...encoder.encode('{"big":9007199254740993 }')], isBinary: false, origin: 0 },
        ])
      })

      it('has copied the payload when publish returns', async () => {
        await broker.bind('#')
        const payload = encoder.encode('before')
        const accepted = broker.publish({ key: 'a', payload, isBinary: false })
        payload.fill(0x78)
        await accepted
        expect(await deliveredUpTo('before')).toEqual(['before'])
        if (expected.history) expect((await read({ last: 1 }, ['a'])).texts).toEqual(['before'])
      })

      it.runIf(expected.ordered)('keeps the publish order, within a key and over all', async () => {
        await broker.bind('#')
        const texts = Array.from({ length: 100 }, (_, index) => `${index}`)
        await Promise.all(texts.map((body, index) => broker.publish(text(`key.${index % 3}`, body))))
        expect(await deliveredUpTo('99')).toEqual(texts)
      })

      it.runIf(expected.confirms)('resolves a publish with what was accepted, listened to or not', async () => {
        const accepted = await broker.publish(text('nobody.listens', 'one'))
        expect(accepted.isDuplicate).toBe(false)
        if (expected.history) expect((await read({ last: 1 }, ['#'])).messages[0]?.position).toEqual(accepted.position)
      })

      it('delivers a message id once within its window', async () => {
        await broker.bind('#')
        const first = await broker.publish(text('a', 'first', { messageId: 'id-1' }))
        const again = await broker.publish(text('a', 'again', { messageId: 'id-1' }))
        const other = await broker.publish(text('a', 'other', { messageId: 'id-2' }))
        expect([first, again, other].map(({ isDuplicate }) => isDuplicate)).toEqual([false, true, false])
        expect(again.position).toEqual(first.position)
        expect(await deliveredUpTo('other')).toEqual(['first', 'other'])
      })

      it('refuses to publish once stopped, and stops twice without harm', async () => {
        await broker.stop()
        await broker.stop()
        await expect(async () => broker.publish(text('a', 'late'))).rejects.toMatchObject({
          code: 'E_BROKER_UNAVAILABLE',
        })
      })
    })

    describe.runIf(expected.history)('history', () => {
      const publishAll = async (...bodies: string[]): Promise<Position[]> => {
        const positions: Position[] = []
        for (const body of bodies) positions.push((await broker.publish(text(`key.${body}`, body))).position ?? NOWHERE)
        return positions
      }

      it('gives every message a position of its own, in order', async () => {
        await broker.bind('#')
        const start = await broker.position()
        const positions = await publishAll('a', 'b', 'c')
        await deliveredUpTo('c')
        expect(sink.deliveries.map(({ position }) => position)).toEqual(positions)
        const offsets = [start ?? NOWHERE, ...positions].map(({ offset }) => offset)
        expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => a - b))
        for (const position of positions) expect(formatPosition(position)).toMatch(/^[\w:.-]{1,52}:[0-9a-z]{1,11}$/)
        expect(await broker.position()).toEqual(positions.at(-1))
      })

      it('delivers in the order of the log, over all keys and bindings', async () => {
        for (const pattern of ['key.0', '*.1', 'key.2.#']) await broker.bind(pattern)
        const texts = Array.from({ length: 99 }, (_, index) => String(index))
        await Promise.all(texts.map((body, index) => broker.publish(text(`key.${index % 3}`, body))))
        await vi.waitFor(() => expect(sink.deliveries).toHaveLength(99), { timeout: 5_000 })
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

      it('keeps bytes and kind', async () => {
        await broker.publish({ key: 'a', payload: Uint8Array.of(0, 255, 10), isBinary: true })
        const { messages } = await broker.read({ last: 1 }, ['a'])
        expect(messages.map(({ payload, isBinary }) => ({ bytes: [...payload], isBinary }))).toEqual([
          { bytes: [0, 255, 10], isBinary: true },
        ])
      })

      it('loses nothing between a read and what is delivered live', async () => {
        await broker.bind('#')
        await publishAll('a', 'b')
        await deliveredUpTo('b')
        const before = (await read({ last: 10 }, ['#'])).texts
        const { position } = await read({ last: 0 }, ['#'])
        await publishAll('c', 'd')
        await deliveredUpTo('d')
        expect([...before, ...(await read({ since: position }, ['#'])).texts]).toEqual(sink.texts)
      })

      it('says gap, and reads all there is, for a position of another epoch', async () => {
        await publishAll('a', 'b')
        const result = await read({ since: { epoch: 'another-epoch', offset: 1 } }, ['#'])
        expect(result).toMatchObject({ gap: 'epoch-changed', texts: ['a', 'b'] })
      })

      it(expected.durable ? 'keeps its log over a restart' : 'says gap after a restart that lost its log', async () => {
        const [first = NOWHERE] = await publishAll('a', 'b')
        await broker.stop()
        await broker.start(sink)
        await publishAll('c')
        const result = await read({ since: first }, ['#'])
        if (expected.durable) expect(result).toMatchObject({ texts: ['b', 'c'] })
        else expect(result).toMatchObject({ texts: ['c'], gap: 'epoch-changed' })
      })
    })

    it.runIf(!expected.history)('has no positions and reads nothing without history', async () => {
      expect(await broker.position()).toBeUndefined()
      expect(await broker.publish(text('a', 'a'))).toEqual({ isDuplicate: false })
      await expect(async () => broker.read({ last: 1 }, ['#'])).rejects.toMatchObject({ code: 'E_UNSUPPORTED' })
    })
  })
}
