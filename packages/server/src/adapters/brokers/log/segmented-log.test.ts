import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LoggedMessage } from './segment.js'
import { SegmentedLog, type Wants } from './segmented-log.js'

const all = () => true
const unbounded = () => ({ left: Number.POSITIVE_INFINITY })

function readAfter(log: SegmentedLog, offset: number, wants: Wants, limit: number) {
  const messages: LoggedMessage[] = []
  const upTo = log.lastOffset
  const endOffset = log.collect({ after: offset, upTo, wants, limit }, messages, unbounded())
  return { messages, endOffset, isPartial: endOffset < upTo }
}

function offsetBeforeNewest(log: SegmentedLog, count: number, wants: Wants, floor: number): number {
  const upTo = log.lastOffset
  const { before = upTo, lookedAfter } = log.newest({ floor, upTo, wants, count }, unbounded())
  expect(lookedAfter).toBe(floor)
  return Math.max(before, log.heldAfter)
}

describe('SegmentedLog', () => {
  it('holds exactly the newest messages that fit, like a list that is cut from the front', () => {
    fc.assert(
      fc.property(
        fc.record({ maxMessages: fc.integer({ min: 1, max: 8 }), maxBytes: fc.integer({ min: 1, max: 40 }) }),
        fc.array(fc.record({ key: fc.constantFrom('a', 'b'), size: fc.nat(50) }), { maxLength: 60 }),
        (limits, appended) => {
          const log = new SegmentedLog(limits)
          const expected: { offset: number; key: string; size: number }[] = []
          appended.forEach(({ key, size }, index) => {
            log.append({ key, payload: new Uint8Array(size).fill(index), isBinary: false }, index + 1, 1, index)
            expected.push({ offset: index + 1, key, size })
            const bytes = () => expected.reduce((sum, message) => sum + message.size, 0)
            while (expected.length > limits.maxMessages || bytes() > limits.maxBytes) expected.shift()
            expect(log.byteCount).toBe(bytes())
          })
          const summary = ({ offset, key, payload }: { offset: number; key: string; payload: Uint8Array }) => {
            expect(payload.every((byte) => byte === offset - 1)).toBe(true)
            return { offset, key, size: payload.length }
          }
          const held = expected[0]?.offset ?? appended.length + 1
          expect(log.heldAfter).toBe(held - 1)
          expect(log.count).toBe(expected.length)
          expect(log.lastOffset).toBe(appended.length)
          const page = readAfter(log, 0, all, 3)
          expect(page.messages.map(summary)).toEqual(expected.slice(0, 3))
          expect(page.isPartial).toBe(expected.length > 3)
          const wanted = expected.filter(({ key }) => key === 'a')
          const isA = (key: string) => key === 'a'
          expect(readAfter(log, 0, isA, 100).messages.map(summary)).toEqual(wanted)
          const before = offsetBeforeNewest(log, 3, isA, 0)
          expect(readAfter(log, before, isA, 100).messages.map(summary)).toEqual(wanted.slice(-3))
          expect(offsetBeforeNewest(log, 100, all, 0)).toBe(held - 1)
          // Times are one less than offsets.
          const middle = Math.max(held, Math.ceil(appended.length / 2))
          expect(log.offsetBefore(middle - 1)).toBe(Math.min(middle - 1, appended.length))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('reads over the border of its allocations', () => {
    const log = new SegmentedLog({ maxMessages: 10_000, maxBytes: 16 * 1_048_576 })
    for (let index = 0; index < 9_000; index++)
      log.append({ key: `key.${index}`, payload: new Uint8Array(1_000), isBinary: false }, index + 1, 1, 0)
    expect(readAfter(log, 0, all, 10_000).messages).toHaveLength(9_000)
    const before = offsetBeforeNewest(log, 5_000, all, 0)
    expect(readAfter(log, before, all, 10_000).messages.map(({ offset }) => offset)).toEqual(
      Array.from({ length: 5_000 }, (_, i) => i + 4_001),
    )
    expect(readAfter(log, 4_095, all, 1).messages[0]?.key).toBe('key.4095')
  })

  it('reads on where a read has ended, and knows offsets that are not next to each other', () => {
    const log = new SegmentedLog({ maxMessages: 100, maxBytes: 1_000 }, '', 50)
    for (const offset of [60, 61, 75, 90])
      log.append({ key: 'k', payload: new Uint8Array(1), isBinary: false }, offset, 1, offset)
    const first = readAfter(log, 50, all, 2)
    expect(first).toMatchObject({ messages: [{ offset: 60 }, { offset: 61 }], endOffset: 61, isPartial: true })
    const second = readAfter(log, first.endOffset, all, 2)
    expect(second).toMatchObject({ messages: [{ offset: 75 }, { offset: 90 }], endOffset: 90, isPartial: false })
    expect(readAfter(log, 74, all, 10).messages).toHaveLength(2)
    expect(log.offsetBefore(62)).toBe(61)
  })

  it('lets go of what is too old', () => {
    const log = new SegmentedLog({ maxMessages: 100, maxBytes: 1_000 })
    for (let offset = 1; offset <= 5; offset++)
      log.append({ key: 'k', payload: new Uint8Array(1), isBinary: false }, offset, 1, offset * 10)
    log.dropBefore(30)
    expect(readAfter(log, 0, all, 10).messages.map(({ offset }) => offset)).toEqual([3, 4, 5])
    expect(log).toMatchObject({ heldAfter: 2, droppedTimeMs: 20, count: 3, byteCount: 3 })
  })

  it('finds the messages of one key in many segments, as without skipping any', () => {
    const [maxMessages, keyCount, quietCount] = [50_000, 3_000, 3]
    const log = new SegmentedLog({ maxMessages, maxBytes: 1e7 })
    for (let offset = 1; offset <= 60_000; offset++) {
      const isQuiet = [15_000, 30_000, 59_999].includes(offset)
      log.append(
        { key: isQuiet ? 'quiet' : `k${(offset * offset) % keyCount}`, payload: new Uint8Array(1), isBinary: false },
        offset,
        1,
        offset,
      )
    }
    for (const key of ['quiet', 'k1', 'k4', 'never']) {
      const wants = (other: string) => other === key
      const { messages: expected } = readAfter(log, 0, wants, maxMessages)
      if (key === 'quiet') expect(expected).toHaveLength(quietCount)
      for (const steps of [Number.POSITIVE_INFINITY, 1_000]) {
        const found: LoggedMessage[] = []
        const upTo = 59_999
        for (let after = 0; after < upTo; )
          after = log.collect({ after, upTo, wants, limit: maxMessages, key }, found, { left: steps })
        expect(found).toEqual(expected)
        const search = { floor: 20_000, upTo: 60_000, wants, count: 2, key }
        let lookedAfter = search.upTo
        let before = search.upTo
        let leftCount = search.count
        while (lookedAfter > search.floor) {
          const part = log.newest({ ...search, upTo: lookedAfter, count: leftCount }, { left: steps })
          ;({ lookedAfter, leftCount } = part)
          before = part.before ?? before
        }
        const newest = expected.filter(({ offset }) => offset > search.floor).slice(-2)
        expect(leftCount).toBe(2 - newest.length)
        if (newest[0] !== undefined) expect(before).toBe(newest[0].offset - 1)
      }
    }
  })

  it('looks for a key that it does not have without looking at its messages, also while they come', () => {
    const log = new SegmentedLog({ maxMessages: 10_000, maxBytes: 1_048_576 })
    const read = () => {
      const budget = { left: 1_000_000 }
      const search = { after: 0, upTo: log.lastOffset, wants: (key: string) => key === 'none', limit: 10, key: 'none' }
      expect(log.collect(search, [], budget)).toBe(log.lastOffset)
      return 1_000_000 - budget.left
    }
    for (let offset = 1; offset <= 4_000; offset++)
      log.append({ key: `k${offset % 7}`, payload: new Uint8Array(1), isBinary: false }, offset, 0, 0)
    // The first read makes the filter of the keys, the next ones add those that have come.
    expect(read()).toBeLessThanOrEqual(2 * 4_000)
    expect(read()).toBe(0)
    log.append({ key: 'k', payload: new Uint8Array(1), isBinary: false }, 4_001, 0, 0)
    expect(read()).toBeLessThan(10)
    log.append({ key: 'none', payload: new Uint8Array(1), isBinary: false }, 4_002, 0, 0)
    expect(read()).toBeGreaterThan(2 * 4_000)
  })
})
