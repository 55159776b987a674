import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeChunk, encodeFrame, Joiner, KINDS } from './frames.js'

const MAX_BYTES = 1_000

describe('frames', () => {
  it('come together from chunks in any order, some of them twice', () => {
    const kind = fc.constantFrom(...KINDS)
    fc.assert(
      fc.property(
        kind,
        fc.uint8Array({ maxLength: 300 }),
        fc.integer({ min: 10, max: 80 }),
        (kind, bytes, maxBytes) => {
          const messages = encodeFrame({ kind, bytes }, maxBytes) ?? []
          expect(Math.max(...messages.map(({ length }) => length))).toBeLessThanOrEqual(maxBytes)
          const joiner = new Joiner(MAX_BYTES)
          const mixed = messages.length === 1 ? messages : [...messages.slice(1), ...messages].reverse()
          const frames = mixed.flatMap((message) => joiner.join(chunkOf(message)) ?? [])
          expect(frames[0]).toEqual({ kind, bytes })
        },
      ),
    )
  })

  it('that take too many chunks are refused', () => {
    expect(encodeFrame({ kind: 'update', bytes: new Uint8Array(65_535) }, 10)).toHaveLength(65_535)
    expect(encodeFrame({ kind: 'update', bytes: new Uint8Array(65_536) }, 10)).toBeUndefined()
    expect(encodeFrame({ kind: 'update', bytes: new Uint8Array(1) }, 9)).toBeUndefined()
  })

  it('are not read from anything else', () => {
    const [message = new Uint8Array()] = encodeFrame({ kind: 'update', bytes: Uint8Array.of(1) }, 100) ?? []
    expect(decodeChunk(message)).toMatchObject({ kind: 'update', index: 0, count: 1 })
    const withByte = (at: number, value: number) => message.with(at, value)
    for (const other of [
      undefined,
      'text',
      {},
      message.subarray(0, 8),
      withByte(0, 9),
      withByte(6, 1),
      withByte(8, 0),
    ]) {
      expect(decodeChunk(other)).toBeUndefined()
    }
  })

  it('that are never complete make room for others', () => {
    const joiner = new Joiner(MAX_BYTES)
    for (let count = 0; count < 500; count++) {
      const [first = new Uint8Array()] = encodeFrame({ kind: 'update', bytes: new Uint8Array(100) }, 59) ?? []
      expect(joiner.join(chunkOf(first))).toBeUndefined()
      expect(joiner.bytes).toBeLessThanOrEqual(MAX_BYTES)
    }
    const whole = encodeFrame({ kind: 'update', bytes: new Uint8Array(200) }, 59) ?? []
    expect(whole.flatMap((message) => joiner.join(chunkOf(message)) ?? [])).toHaveLength(1)
  })
})

function chunkOf(message: Uint8Array) {
  const chunk = decodeChunk(message)
  if (!chunk) throw new Error('no chunk')
  return chunk
}
