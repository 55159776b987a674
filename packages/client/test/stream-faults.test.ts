import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestServer } from '../src/dev/testing/index.js'
import { WebMQClient, type WebSocketConstructor } from '../src/index.js'
import { openStream, readStream, type StreamReader } from '../src/parts/stream/index.js'
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

/** Loses live messages of the stream, brings them twice, or after the next one. */
function faulty(WebSocket: WebSocketConstructor, random: () => number): WebSocketConstructor {
  return class {
    constructor(url: string, protocols: string[]) {
      const socket = new WebSocket(url, protocols)
      let handle: ((event: never) => void) | null = null
      let late: unknown
      const deliver = (event: unknown) => handle?.(event as never)
      const receive = (event: { readonly data: string | ArrayBuffer }) => {
        const { data } = event
        const header = (typeof data === 'string' ? data : new TextDecoder().decode(data)).split('\n', 1).join()
        const isLive = header.startsWith(`message ${KEY} `) && !header.includes(' replay')
        const fault = isLive ? random() : 1
        if (fault < 0.03) return
        if (fault < 0.06 && late === undefined) {
          late = event
          return
        }
        deliver(event)
        if (fault < 0.1) deliver(event)
        if (late !== undefined) deliver(late)
        late = undefined
      }
      Object.defineProperty(socket, 'onmessage', {
        get: () => handle && receive,
        set: (handler) => {
          handle = handler
        },
      })
      // biome-ignore lint/correctness/noConstructorReturn: the socket itself, with one property replaced
      return socket as never
    }
  } as unknown as WebSocketConstructor
}

it.each(Array.from({ length: RUNS }, (_, seed) => seed))(
  'whatever is cut, late, double or lost: every reader has what was acknowledged (seed %i)',
  async (seed) => {
    const random = seededRandom(seed)
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T
    const isBinary = seed % 4 === 0
    const server = createTestServer({ replayPageMessages: 3, historyMaxMessages: 60 })
    const clients = Array.from(
      { length: 3 },
      () =>
        new WebMQClient({
          url: server.url,
          WebSocket: faulty(server.WebSocket, random),
          random,
          ackTimeoutMs: 3_000,
        }),
    )
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
      else if (fault < 0.12) server.loseAnswer('stream')
      else if (fault < 0.16) server.ignore('stream')
      else if (fault < 0.2) server.refuse('stream', 'E_BROKER_UNAVAILABLE')
      else if (fault < 0.24) server.ignore(pick(['read', 'listen']))
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
