import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MessageLog } from './message-log.js'

const all = () => true

describe('MessageLog', () => {
  it('holds exactly the newest messages that fit, like a list that is cut from the front', () => {
    fc.assert(
      fc.property(
        fc.record({ maxMessages: fc.integer({ min: 1, max: 8 }), maxBytes: fc.integer({ min: 1, max: 40 }) }),
        fc.array(fc.record({ key: fc.constantFrom('a', 'b'), size: fc.nat(50) }), { maxLength: 60 }),
        (limits, appended) => {
          const log = new MessageLog(limits)
          const expected: { offset: number; key: string; size: number }[] = []
          appended.forEach(({ key, size }, index) => {
            expect(log.append(key, new Uint8Array(size).fill(index), false)).toBe(index + 1)
            expected.push({ offset: index + 1, key, size })
            const bytes = () => expected.reduce((sum, message) => sum + message.size, 0)
            while (expected.length > limits.maxMessages || bytes() > limits.maxBytes) expected.shift()
            expect(log.byteCount).toBe(bytes())
          })
          const summary = ({ offset, key, payload }: { offset: number; key: string; payload: Uint8Array }) => {
            expect(payload.every((byte) => byte === offset - 1)).toBe(true)
            return { offset, key, size: payload.length }
          }
          expect(log.after(0, all).map(summary)).toEqual(expected)
          expect(log.firstOffset).toBe(expected[0]?.offset ?? appended.length + 1)
          const wanted = expected.filter(({ key }) => key === 'a')
          expect(log.newest(3, (key) => key === 'a').map(summary)).toEqual(wanted.slice(-3))
          expect(log.after(log.lastOffset - 2, (key) => key === 'a').map(summary)).toEqual(
            wanted.filter(({ offset }) => offset > log.lastOffset - 2),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  it('reads over the border of its allocations', () => {
    const log = new MessageLog({ maxMessages: 10_000, maxBytes: 16 * 1_048_576 })
    for (let index = 0; index < 9_000; index++) log.append(`key.${index}`, new Uint8Array(1_000), false)
    expect(log.after(0, all)).toHaveLength(9_000)
    expect(log.newest(5_000, all).map(({ offset }) => offset)).toEqual(
      Array.from({ length: 5_000 }, (_, i) => i + 4_001),
    )
    expect(log.after(4_095, all)[0]?.key).toBe('key.4095')
  })
})
