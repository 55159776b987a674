import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientFrame, closeFrame, OPCODE } from 'webmq-conformance'
import { FrameBoundaries } from './frame-boundaries.js'

const text = (bytes: number) => clientFrame(OPCODE.text, 'x'.repeat(bytes))

describe('FrameBoundaries', () => {
  it.each([0, 1, 125, 126, 65_535, 65_536])('finds the end of a message of %i bytes', (bytes) => {
    const boundaries = new FrameBoundaries()
    expect(boundaries.read(text(bytes))).toBe(true)
    expect(boundaries.partialBytes).toBe(0)
  })

  it('counts the bytes of a message that has begun', () => {
    const boundaries = new FrameBoundaries()
    expect(boundaries.read(Buffer.concat([text(5), text(100).subarray(0, 20)]))).toBe(true)
    expect(boundaries.partialBytes).toBe(20)
    expect(boundaries.read(text(100).subarray(20, 30))).toBe(false)
    expect(boundaries.partialBytes).toBe(30)
  })

  it('takes a message with fragments as one, with pings between them', () => {
    const boundaries = new FrameBoundaries()
    expect(boundaries.read(clientFrame(OPCODE.text, 'a', { isFinal: false }))).toBe(false)
    expect(boundaries.read(clientFrame(OPCODE.ping, 'b'))).toBe(false)
    expect(boundaries.partialBytes).toBeGreaterThan(0)
    expect(boundaries.read(clientFrame(OPCODE.continuation, 'c'))).toBe(true)
    expect(boundaries.partialBytes).toBe(0)
  })

  it('notices a close frame once it is complete', () => {
    const boundaries = new FrameBoundaries()
    boundaries.read(Buffer.concat([text(3), closeFrame(1000).subarray(0, 4)]))
    expect(boundaries.hasClosed).toBe(false)
    boundaries.read(closeFrame(1000).subarray(4))
    expect(boundaries.hasClosed).toBe(true)
  })

  it('says the same however the bytes arrive', () => {
    const messages = fc.array(fc.nat(300), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(messages, fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }), (sizes, cuts) => {
        const bytes = Buffer.concat(sizes.map(text))
        const boundaries = new FrameBoundaries()
        for (let at = 0, cut = 0; at < bytes.length; cut++) {
          const end = at + (cuts[cut % cuts.length] ?? 1)
          boundaries.read(bytes.subarray(at, end))
          at = end
        }
        expect(boundaries.partialBytes).toBe(0)
      }),
    )
  })
})
