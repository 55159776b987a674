import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LinkDelivery } from '../remote/link.js'
import { DeliveryReader } from './delivery-reader.js'
import { shortText } from './frames.js'
import { SourceReader } from './message-properties.js'
import { PublishFrames } from './publish-frames.js'

const CHANNEL = 7
const NODE = '0123456789abcdef'

interface Sent {
  readonly key: string
  readonly payload: Uint8Array
  readonly isBinary: boolean
  readonly origin: number | undefined
}

const sent: fc.Arbitrary<Sent> = fc.record({
  key: fc.constantFrom('a', 'chat.42.message', 'ü.字', 'x'.repeat(255)),
  payload: fc.uint8Array({ maxLength: 300 }),
  isBinary: fc.boolean(),
  origin: fc.option(fc.nat(), { nil: undefined }),
})

/** What the broker makes of published messages: another method frame before the same header and body. */
function delivered(messages: readonly Sent[], { tag = 'messages', channel = CHANNEL } = {}): Buffer[] {
  return messages.map((message, index) => {
    const parts: Uint8Array[] = []
    const frames = new PublishFrames({
      channel,
      exchange: '',
      node: NODE,
      frameMaxBytes: 131_072,
      write: (bytes) => parts.push(Buffer.from(bytes)),
    })
    frames.add({ ...message, sequence: index + 1, messageId: undefined, isLogged: false })
    frames.flush()
    const published = Buffer.concat(parts)
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
        const byteCount = readerWith(taken).read(bytes)
        let completeCount = 0
        let completeBytes = 0
        for (const part of parts) {
          if (completeBytes + part.length > bytes.length) break
          completeBytes += part.length
          completeCount++
        }
        expect(byteCount).toBe(completeBytes)
        expect(taken).toEqual(
          messages
            .slice(0, completeCount)
            .map(({ key, payload, isBinary, origin }, index) => [
              index + 1,
              { key, payload: new Uint8Array(payload), isBinary, source: { node: NODE, sequence: index + 1, origin } },
            ]),
        )
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
      expect(readerWith(taken).read(Buffer.concat([other, own]))).toBe(0)
      expect(taken).toEqual([])
    }
    expect(readerWith([]).read(own)).toBe(own.length)
  })
})
