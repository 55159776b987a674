import { describe, expect, it } from 'vitest'
import type { TransportCapabilities } from 'webmq-server/ports'
import { itWhere } from '../applies.js'
import { eventually } from './eventually.js'
import { type CreateTransport, DEFAULT_OPTIONS, group, Harness } from './harness.js'

/** Longer than a test. */
const VALID_MS = 60_000
/** Time for a transport's own thread to read or write. Too little hides a defect, and fails no test. */
const OTHER_THREAD_MS = 50

/** Answers that the owner of a transport has prepared. */
export function answerTests(create: CreateTransport, expected: TransportCapabilities): void {
  describe('prepared answers', () => {
    it('are taken by a transport that says so, and by no other', () => {
      expect(create(DEFAULT_OPTIONS).prepareAnswer !== undefined).toBe(expected.answers)
    })

    /** The sink answers requests with their number, and prepares each answer. */
    const start = async (validMs: number) => {
      const harness = await Harness.start(create, {}, (transport) => ({
        message: (connection, data) => {
          const answer = `answer ${harness.sink.messages.length}`
          transport.prepareAnswer?.(Buffer.from(data).toString(), answer, validMs)
          transport.send(connection, answer, false)
        },
      }))
      const { client: first, connection } = await harness.connect()
      const { client: second } = await harness.connect()
      first.send('time?')
      await eventually(() => expect(first.texts).toEqual(['answer 1']))
      return { harness, first, second, connection }
    }

    itWhere(expected.answers)('go to everybody who sends the same text, and the sink is not told', async () => {
      const { harness, first, second } = await start(VALID_MS)
      second.send('time?')
      first.send('time?')
      await eventually(() => expect([first.texts, second.texts]).toEqual([['answer 1', 'answer 1'], ['answer 1']]))
      expect(harness.sink.messages).toHaveLength(1)
      await eventually(() => expect(harness.transport.stats().answeredMessageCount).toBe(2))
      second.send(Buffer.from('time?'))
      await eventually(() => expect(second.texts).toEqual(['answer 1', 'answer 2']))
    })

    itWhere(expected.answers)('end with their time', async () => {
      const { first, second } = await start(0)
      second.send('time?')
      await eventually(() => expect(second.texts).toEqual(['answer 2']))
      first.send('time?')
      await eventually(() => expect(first.texts).toEqual(['answer 1', 'answer 3']))
    })

    itWhere(expected.answers)('end with the next multicast, which goes first', async () => {
      const { harness, first, connection } = await start(VALID_MS)
      harness.transport.join(connection, group(1))
      harness.transport.multicast([group(1)], 'news', false)
      await eventually(() => expect(first.texts).toEqual(['answer 1', 'news']))
      first.send('time?')
      await eventually(() => expect(first.texts).toEqual(['answer 1', 'news', 'answer 2']))
    })

    it.each([
      ['one large message', [200_000]],
      ['many messages', new Array<number>(200).fill(1_000)],
    ])('do not come between %s and what the same turn sends after', async (_, lengths) => {
      const { harness, first, connection } = await start(VALID_MS)
      for (const length of lengths) harness.transport.send(connection, 'x'.repeat(length), false)
      standStill()
      first.send('time?')
      standStill()
      harness.transport.send(connection, 'end', false)
      const sent = [...lengths, 'end']
      const received = () => first.texts.slice(1).map((text) => (text.startsWith('x') ? text.length : text))
      await eventually(() => expect(received()).toEqual([...sent, 'answer 2']))
    })
  })
}

/** Keeps the event loop busy. */
function standStill(): void {
  const end = performance.now() + OTHER_THREAD_MS
  while (performance.now() < end);
}
