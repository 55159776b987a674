import { describe, expect } from 'vitest'
import type { TransportCapabilities } from 'webmq-server/ports'
import { itWhere } from '../applies.js'
import { eventually } from './eventually.js'
import { type CreateTransport, group, Harness } from './harness.js'
import type { RawClient } from './raw-client.js'

const [LATEST, TOLD, OLDEST, ALL] = [group(1), group(2), group(3), group(4)]
const TOPICS = 50
const PAYLOAD = 'x'.repeat(1_000)
/** Between the limit of the tests and what the kernel takes. */
const MAX_OUTBOX_BYTES = 512 * 1024

/**
 * What members get that lag in groups whose messages may be left out.
 * @param isShort Runs one test, for time.
 */
export function overflowTests(
  create: CreateTransport,
  expected: TransportCapabilities,
  { isShort = false }: { readonly isShort?: boolean } = {},
): void {
  describe('messages that may be left out', () => {
    const start = async () => {
      const harness = await Harness.start(create, { maxOutboxBytes: MAX_OUTBOX_BYTES, closeTimeoutMs: 40_000 })
      const { transport } = harness
      transport.setOverflow(LATEST, { policy: 'latest' })
      transport.setOverflow(TOLD, { policy: 'latest', notice: 'gap told' })
      transport.setOverflow(OLDEST, { policy: 'drop-oldest', notice: 'gap oldest' })
      const reader = await harness.connectRaw()
      const witness = await harness.connect()
      return { harness, transport, reader, witness }
    }

    itWhere(!expected.overflow)('are not, without the capability', async () => {
      const { transport, reader } = await start()
      transport.join(reader.connection, LATEST)
      for (let number = 0; number < 100; number++) transport.multicast([LATEST], `${number}`, false, undefined, 1)
      await eventually(() => expect(reader.client.texts).toHaveLength(100))
    })

    /** A reader that does not read gets updates of each topic, until far more was sent than its outbox holds. */
    const flood = async (
      { transport, reader, witness }: Awaited<ReturnType<typeof start>>,
      to: typeof LATEST,
    ): Promise<string[]> => {
      reader.client.socket.pause()
      const sent: string[] = []
      const before = witness.client.messages.length
      const leftOut = () => transport.stats().conflatedCount + transport.stats().droppedCount
      // The kernel takes some megabytes before anything is left out.
      for (let round = 0; round < 400 && leftOut() < 20 * TOPICS; round++) {
        for (let topic = 0; topic < TOPICS; topic++) {
          const text = `${sent.length} ${topic} ${PAYLOAD}`
          sent.push(text)
          transport.multicast([to], text, false, undefined, topic)
        }
        // The other member reads all of it.
        await eventually(() => expect(witness.client.messages).toHaveLength(before + sent.length))
      }
      expect(leftOut()).toBeGreaterThanOrEqual(20 * TOPICS)
      return sent
    }

    const readAll = async (client: RawClient, last: string) => {
      client.socket.resume()
      await eventually(() => expect(client.texts.at(-1)).toBe(last))
      return client.texts
    }

    const expectOrder = (texts: readonly string[], sent: readonly string[]) => {
      const numbers = texts.filter((text) => text.endsWith(PAYLOAD)).map((text) => Number.parseInt(text, 10))
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
      expect(numbers.every((number) => texts.includes(sent[number] ?? ''))).toBe(true)
    }

    itWhere(expected.overflow)(
      '`latest`: a member that lags gets the newest of each topic, in order',
      {
        timeout: 60_000,
      },
      async () => {
        const all = await start()
        const { transport, reader, witness, harness } = all
        for (const { connection } of [reader, witness]) transport.join(connection, LATEST)
        const sent = await flood(all, LATEST)
        expect(transport.stats().outboxBytes).toBeLessThan(MAX_OUTBOX_BYTES)
        transport.send(reader.connection, 'own', false)
        const texts = await readAll(reader.client, 'own')
        expectOrder(texts, sent)
        expect(texts.slice(-TOPICS - 1, -1)).toEqual(sent.slice(-TOPICS))
        expect(texts).toHaveLength(1 + sent.length - transport.stats().conflatedCount)
        expect(texts).not.toContain('gap told')
        expect(transport.stats()).toMatchObject({ slowConsumerCount: 0, droppedCount: 0 })
        // Nothing is left out of a group that allows nothing, nor without a topic.
        transport.setOverflow(LATEST, undefined)
        transport.multicast([LATEST], 'later', false, undefined, 1)
        await eventually(() => expect(reader.client.texts.at(-1)).toBe('later'))
        await harness.expectToServe()
      },
    )

    if (isShort) return

    itWhere(expected.overflow)(
      '`latest` with a notice: it is told before the next message that comes',
      {
        timeout: 60_000,
      },
      async () => {
        const all = await start()
        const { transport, reader, witness } = all
        for (const { connection } of [reader, witness]) transport.join(connection, TOLD)
        const sent = await flood(all, TOLD)
        transport.send(reader.connection, 'own', false)
        const texts = await readAll(reader.client, 'own')
        expectOrder(texts, sent)
        expectNoticesInPlace(texts.slice(0, -1), 'gap told')
        expect(texts.slice(-TOPICS - 1, -1)).toEqual(sent.slice(-TOPICS))
      },
    )

    itWhere(expected.overflow)(
      '`drop-oldest`: it gets the newest, and a notice where others are missing',
      { timeout: 60_000 },
      async () => {
        const all = await start()
        const { transport, reader, witness } = all
        for (const { connection } of [reader, witness]) transport.join(connection, OLDEST)
        const sent = await flood(all, OLDEST)
        const texts = await readAll(reader.client, sent.at(-1) ?? '')
        expectNoticesInPlace(texts, 'gap oldest')
        const count = texts.filter((text) => text !== 'gap oldest').length
        expect(transport.stats()).toMatchObject({
          slowConsumerCount: 0,
          conflatedCount: 0,
          droppedCount: sent.length - count,
        })
      },
    )

    itWhere(expected.overflow)(
      'a group that a member has left: its notice is told, and not that of the next group with its number',
      { timeout: 60_000 },
      async () => {
        const all = await start()
        const { transport, reader, witness } = all
        for (const { connection } of [reader, witness]) transport.join(connection, OLDEST)
        await flood(all, OLDEST)
        for (const { connection } of [reader, witness]) transport.leave(connection, OLDEST)
        transport.setOverflow(OLDEST, undefined)
        transport.setOverflow(OLDEST, { policy: 'drop-oldest', notice: 'gap of others' })
        transport.send(reader.connection, 'own', false)
        const texts = await readAll(reader.client, 'own')
        expectNoticesInPlace(texts.slice(0, -1), 'gap oldest')
      },
    )

    itWhere(expected.overflow)(
      'leaves out no message that reaches a member through another group too',
      {
        timeout: 60_000,
      },
      async () => {
        const all = await start()
        const { transport, reader, witness } = all
        for (const { connection } of [reader, witness]) transport.join(connection, LATEST)
        transport.join(reader.connection, ALL)
        await flood(all, LATEST)
        const kept: string[] = []
        for (let number = 0; number < 20; number++) {
          for (const to of [[LATEST, ALL], [ALL, LATEST], [ALL]]) {
            kept.push(`kept ${kept.length}`)
            transport.multicast(to, `kept ${kept.length - 1}`, false, undefined, 1)
          }
          kept.push(`kept ${kept.length}`)
          transport.multicast([LATEST], `kept ${kept.length - 1}`, false)
        }
        const texts = await readAll(reader.client, kept.at(-1) ?? '')
        expect(texts.filter((text) => text.startsWith('kept'))).toEqual(kept)
      },
    )

    itWhere(expected.overflow)(
      'closes a member with 4008 whose newest messages alone are too much',
      {
        timeout: 60_000,
      },
      async () => {
        const { harness, transport, reader } = await start()
        transport.join(reader.connection, LATEST)
        reader.client.socket.pause()
        for (let topic = 0; harness.sink.closureOf(reader.connection) === undefined && topic < 20_000; topic += 100) {
          for (let next = topic; next < topic + 100; next++) {
            transport.multicast([LATEST], PAYLOAD, false, undefined, next)
          }
          await new Promise((resolve) => setImmediate(resolve))
        }
        await eventually(() => expect(harness.sink.closureOf(reader.connection)?.code).toBe(4008))
      },
    )
  })
}

/** A notice stands where numbers are missing, and nowhere else. What the kernel takes meanwhile decides how many there are. */
function expectNoticesInPlace(texts: readonly string[], notice: string): void {
  expect(texts).toContain(notice)
  let next = 0
  let isTold = false
  for (const text of texts) {
    if (text === notice) {
      expect(isTold).toBe(false)
      isTold = true
      continue
    }
    const number = Number.parseInt(text, 10)
    expect(isTold).toBe(number !== next)
    next = number + 1
    isTold = false
  }
}
