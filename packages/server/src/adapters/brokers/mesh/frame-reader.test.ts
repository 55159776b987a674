import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeFrame } from './frames.js'
import { FrameReader } from './wire.js'

interface Read {
  readonly type: number
  readonly body: string
}

const MAX_BYTES = 1_000

function collect(): { reader: FrameReader; frames: Read[] } {
  const frames: Read[] = []
  const reader = new FrameReader(MAX_BYTES, (type, bytes, start, end) => {
    frames.push({ type, body: bytes.toString('hex', start, end) })
  })
  return { reader, frames }
}

describe('FrameReader', () => {
  it('finds every frame, wherever the bytes are cut', () => {
    const frame = fc.record({ type: fc.integer({ min: 1, max: 255 }), body: fc.uint8Array({ maxLength: 40 }) })
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 20 }), fc.array(fc.nat(60), { minLength: 1 }), (sent, cuts) => {
        const { reader, frames } = collect()
        const bytes = Buffer.concat(sent.map(({ type, body }) => encodeFrame(type, body)))
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const count = Math.max(1, cuts[turn % cuts.length] ?? 1)
          // Lent: what the reader keeps beyond the call it must have copied.
          const chunk = Buffer.from(bytes.subarray(at, at + count))
          reader.push(chunk)
          chunk.fill(0xee)
          at += count
        }
        expect(frames).toEqual(sent.map(({ type, body }) => ({ type, body: Buffer.from(body).toString('hex') })))
      }),
    )
  })

  it.each([0, MAX_BYTES + 1, 0x2054_4547, 0xffff_ffff])('refuses a length of %d before it reads on', (length) => {
    const head = Buffer.alloc(4)
    head.writeUInt32LE(length)
    expect(() => collect().reader.push(head)).toThrow(RangeError)
    expect(() => {
      const { reader } = collect()
      for (const byte of head) reader.push(Buffer.of(byte))
    }).toThrow(RangeError)
  })

  it('takes a frame of the largest size', () => {
    const { reader, frames } = collect()
    reader.push(encodeFrame(7, new Uint8Array(MAX_BYTES - 1)))
    expect(frames).toHaveLength(1)
    expect(() => reader.push(encodeFrame(7, new Uint8Array(MAX_BYTES)))).toThrow(RangeError)
  })

  it('hands on nothing more once it is stopped, not even of the same chunk', () => {
    const seen: number[] = []
    const reader: FrameReader = new FrameReader(MAX_BYTES, (type) => {
      seen.push(type)
      if (type === 2) reader.stop()
    })
    reader.push(Buffer.concat([1, 2, 3].map((type) => encodeFrame(type))))
    reader.push(encodeFrame(4))
    expect(seen).toEqual([1, 2])
  })
})
