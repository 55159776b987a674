import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FrameReader } from './frame-reader.js'
import { type MarkedMessage, readMarkedHead } from './message-frame.js'
import { Outbox } from './outbox.js'

const uint48 = fc.integer({ min: 0, max: 2 ** 48 - 1 })

describe('a message with marks', () => {
  it('comes as it was sent, whatever it has', () => {
    const marks = fc.record({
      isBinary: fc.boolean(),
      sequence: fc.oneof(fc.constant(0), uint48),
      past: fc.option(fc.record({ origin: uint48, ageMs: uint48 })),
      messageId: fc.option(fc.string({ minLength: 1, maxLength: 64 }), { nil: undefined }),
    })
    fc.assert(
      fc.property(marks, fc.string({ maxLength: 60 }), fc.uint8Array({ maxLength: 500 }), (sent, key, payload) => {
        const outbox = new Outbox()
        const { isBinary, sequence, past, messageId } = sent
        const id = messageId === undefined ? undefined : Buffer.from(messageId)
        const { origin, ageMs } = past ?? { origin: 0, ageMs: undefined }
        outbox.addMarked({ isBinary, sequence, origin, ageMs, messageId: id }, Buffer.from(key), payload)
        const bytes = outbox.next()
        if (bytes === undefined) throw new Error('nothing to send')
        const come: { head: MarkedMessage | undefined; key: string; payload: Uint8Array }[] = []
        new FrameReader(10_000, (_type, bytes, start, end) => {
          const head = readMarkedHead(bytes, start, end)
          const key = bytes.toString('utf8', head?.keyAt, head?.keyEnd)
          come.push({ head, key, payload: new Uint8Array(bytes.subarray(head?.keyEnd, end)) })
        }).push(bytes)
        expect(come).toMatchObject([{ head: { isBinary, sequence, origin, ageMs, messageId }, key, payload }])
        expect(outbox.lastSequence).toBe(1)
      }),
    )
  })

  it('that is too short is none', () => {
    expect(readMarkedHead(Buffer.of(0, 5, 1), 0, 3)).toBeUndefined()
    expect(readMarkedHead(Buffer.of(4, 200), 0, 2)).toBeUndefined()
  })
})
