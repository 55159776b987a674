import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { openStream, readStream, type StreamReader } from '../src/stream/index.js'
import { createTestClient, createTestServer } from '../src/testing/index.js'
import { seededRandom } from './seeded-random.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const RUNS = 40
const KEY = 'answer'
/** With halves of surrogate pairs, which appends may tear apart. */
const UNITS = ['a', 'é', '漢', '\ud83d', '\ude00', '👩‍👩‍👧', '\n', '"', '\\', '\u0000', '\u2028', 'xyz'.repeat(30)]

it.each(Array.from({ length: RUNS }, (_, seed) => seed))(
  'whatever is cut, late, double or lost: every reader has what was acknowledged (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T
    const isBinary = seed % 4 === 0
    const server = createTestServer({ replayPageMessages: 3, historyMaxMessages: 60 })
    const clients = Array.from({ length: 3 }, () => createTestClient({ server, random, ackTimeoutMs: 3_000 }).client)
    for (const client of clients) client.on('error', () => undefined)
    const [writing, ...reading] = clients
    const read = (): { reader: StreamReader; shown: { text: string } } => {
      const reader = readStream(KEY, { client: pick(reading) })
      const shown = { text: '' }
      reader.onText(({ text, bytes, isWhole }) => {
        const part = text ?? [...bytes].join()
        shown.text = isWhole ? part : [shown.text, part].filter(Boolean).join(isBinary ? ',' : '')
      })
      return { reader, shown }
    }
    const readers = [read(), read()]
    const opening = openStream(KEY, { client: writing })
    await vi.advanceTimersByTimeAsync(5_000)
    const writer = await opening
    let written = ''
    const acks: Promise<void>[] = []
    for (let step = 0; step < 60; step++) {
      const unit = pick(UNITS)
      const content = isBinary ? new TextEncoder().encode(unit) : unit
      const own = typeof content === 'string' ? content : [...content].join()
      written = isBinary ? [written, own].filter(Boolean).join() : written + own
      acks.push(writer.append(content))
      const fault = random()
      if (fault < 0.08) server.drop()
      else if (fault < 0.12) server.loseAnswer('stream' as never)
      else if (fault < 0.16) server.ignore('stream' as never)
      else if (fault < 0.2) server.refuse('stream' as never, 'E_BROKER_UNAVAILABLE')
      else if (fault < 0.24) server.ignore(pick(['read' as never, 'listen']))
      else if (fault < 0.28) server.gap(KEY)
      else if (fault < 0.31) server.expireHistory()
      else if (fault < 0.36) readers.push(read())
      else if (fault < 0.4) readers.splice(0, 1)[0]?.reader.close()
      if (random() < 0.5) await vi.advanceTimersByTimeAsync(random() * 800)
    }
    acks.push(writer.end({ seed }))
    readers.push(read())
    await vi.advanceTimersByTimeAsync(120_000)
    await Promise.all(acks)
    for (const { reader, shown } of readers) {
      expect([reader.status, reader.isCut, reader.result]).toEqual(['end', false, { seed }])
      expect(typeof reader.content === 'string' ? reader.content : [...reader.content].join()).toBe(written)
      expect(shown.text).toBe(written)
    }
    await Promise.all(clients.map((client) => client.close({ flushMs: 0 })))
  },
)
