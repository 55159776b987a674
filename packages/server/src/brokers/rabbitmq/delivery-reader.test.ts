import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LinkDelivery } from '../remote/link.js'
import { DeliveryReader } from './delivery-reader.js'
import { shortText } from './frames.js'
import { SourceReader } from './message-properties.js'
import { PublishFrames } from './publish-frames.js'

const CHANNEL = 7
const NODE = '0123456789abcdef'
const EPOCH = 'fedcba9876543210'
const FIRST_OFFSET = 2 ** 32 + 7

interface Sent {
  readonly key: string
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly origin: number | undefined
  readonly messageId?: string | undefined
}

const sent: fc.Arbitrary<Sent> = fc.record({
  key: fc.constantFrom('a', 'chat.42.message', 'ü.字', 'x'.repeat(255)),
  payload: fc.uint8Array({ maxLength: 300 }),
  isBinary: fc.boolean(),
  origin: fc.option(fc.nat(), { nil: undefined }),
  messageId: fc.option(fc.constantFrom('a', 'x'.repeat(64)), { nil: undefined }),
})

/** What the broker makes of published messages: another method frame before the same header and body. */
function delivered(messages: readonly Sent[], { tag = 'messages', channel = CHANNEL, isLog = false } = {}): Buffer[] {
  return messages.map((message, index) => {
    const parts: Uint8Array[] = []
    const frames = new PublishFrames({
      channel,
      exchange: '',
      node: NODE,
      frameMaxBytes: 131_072,
      write: (bytes) => parts.push(Buffer.from(bytes)),
      epoch: () => EPOCH,
    })
    frames.add({ messageId: undefined, ...message, sequence: index + 1, isLogged: isLog })
    frames.flush()
    const published = isLog ? withOffset(Buffer.concat(parts), FIRST_OFFSET + index) : Buffer.concat(parts)
    const deliveryTag = Buffer.alloc(8)
    deliveryTag.writeBigUInt64BE(BigInt(index + 1))
    const key = shortText(message.key)
    const method = Buffer.concat([
      Buffer.of(0, 60, 0, 60),
      shortText(tag),
      deliveryTag,
      Buffer.of(0),
      shortText('webmq'),
      key,
    ])
    const head = Buffer.alloc(7)
    head[0] = 1
    head.writeUInt16BE(channel, 1)
    head.writeUInt32BE(method.length, 3)
    const methodEnd = 7 + published.readUInt32BE(3) + 1
    return Buffer.concat([head, method, Buffer.of(0xce), published.subarray(methodEnd)])
  })
}

/** What a stream makes of published frames: another entry at the end of the table of headers. */
function withOffset(published: Buffer, offset: number): Buffer {
  const headerAt = 7 + published.readUInt32BE(3) + 1
  const tableAt = headerAt + 21 + 1 + published.readUInt8(headerAt + 21)
  const tableEnd = tableAt + 4 + published.readUInt32BE(tableAt)
  const entry = Buffer.concat([shortText('x-stream-offset'), Buffer.from('l'), Buffer.alloc(8)])
  entry.writeBigUInt64BE(BigInt(offset), entry.length - 8)
  const changed = Buffer.concat([published.subarray(0, tableEnd), entry, published.subarray(tableEnd)])
  changed.writeUInt32BE(published.readUInt32BE(headerAt + 3) + entry.length, headerAt + 3)
  changed.writeUInt32BE(published.readUInt32BE(tableAt) + entry.length, tableAt)
  return changed
}

function readerWith(taken: (readonly [number, LinkDelivery])[]): DeliveryReader {
  return new DeliveryReader({
    channel: CHANNEL,
    consumerTag: 'messages',
    sources: new SourceReader(),
    take: (tag, delivery) => taken.push([tag, { ...delivery, payload: new Uint8Array(delivery.payload) }]),
  })
}

describe('reading deliveries in place', () => {
  it('takes what is complete, as it was published, and leaves the rest', () => {
    fc.assert(
      fc.property(fc.array(sent, { minLength: 1, maxLength: 5 }), fc.nat(1_000_000), (messages, cut) => {
        const parts = delivered(messages)
        const all = Buffer.concat(parts)
        const bytes = all.subarray(0, cut % (all.length + 1))
        const taken: (readonly [number, LinkDelivery])[] = []
        const byteCount = readerWith(taken).read(bytes, 0)
        let completeCount = 0
        let completeBytes = 0
        for (const part of parts) {
          if (completeBytes + part.length > bytes.length) break
          completeBytes += part.length
          completeCount++
        }
        expect(byteCount).toBe(completeBytes)
        expect(taken).toEqual(
          messages.slice(0, completeCount).map(({ key, payload, isBinary, origin, messageId }, index) => {
            const source = { node: NODE, sequence: index + 1, origin }
            return [index + 1, { key, payload: new Uint8Array(payload), isBinary, source, messageId }]
          }),
        )
      }),
    )
  })

  it('takes messages of the log, with place and time', () => {
    fc.assert(
      fc.property(fc.array(sent, { minLength: 1, maxLength: 5 }), (messages) => {
        const fromMs = Date.now()
        const bytes = Buffer.concat(delivered(messages, { tag: 'log', isLog: true }))
        const taken: { readonly delivery: LinkDelivery; readonly offset: number; readonly timeMs: number }[] = []
        const reader = new DeliveryReader({
          channel: CHANNEL,
          consumerTag: 'log',
          sources: new SourceReader(),
          isLog: true,
          take: (_, delivery, { offset, timeMs }) =>
            taken.push({ delivery: { ...delivery, payload: new Uint8Array(delivery.payload) }, offset, timeMs }),
        })
        expect(reader.read(Buffer.concat([Buffer.of(1, 2, 3), bytes]), 3)).toBe(3 + bytes.length)
        expect(taken.map(({ delivery, offset }) => ({ delivery, offset }))).toEqual(
          messages.map(({ key, payload, isBinary, origin, messageId }, index) => {
            const source = { node: NODE, sequence: index + 1, origin }
            const delivery = { key, payload: new Uint8Array(payload), isBinary, source, messageId }
            return { delivery, offset: FIRST_OFFSET + index }
          }),
        )
        for (const { timeMs } of taken) expect(timeMs - fromMs).toBeLessThanOrEqual(Date.now() - fromMs)
        for (const { timeMs } of taken) expect(timeMs).toBeGreaterThanOrEqual(fromMs)
      }),
    )
  })

  it('leaves what is for somebody else, and what a node would not publish', () => {
    const message = { key: 'a.b', payload: Buffer.from('{}'), isBinary: false, origin: undefined }
    const [own = Buffer.alloc(0)] = delivered([message])
    const changed = (find: string, replace: string) =>
      Buffer.from(own.toString('latin1').replace(find, replace), 'latin1')
    const others = [
      ...delivered([message], { tag: 'overflow' }),
      ...delivered([message], { channel: CHANNEL + 1 }),
      changed('application/json', 'application/jsox'),
      changed('webmq-', 'webmx-'),
      changed('a.b', 'a.c'),
      changed('\x90\x80', '\x90\xc0'),
      changed('\xce', '\xcf'),
      Buffer.concat([Buffer.of(8, 0, 0, 0, 0, 0, 0, 0xce), own]),
    ]
    for (const other of others) {
      const taken: (readonly [number, LinkDelivery])[] = []
      expect(readerWith(taken).read(Buffer.concat([other, own]), 0)).toBe(0)
      expect(taken).toEqual([])
    }
    expect(readerWith([]).read(own, 0)).toBe(own.length)
  })
})
