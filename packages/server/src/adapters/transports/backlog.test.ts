import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GroupId } from '../../kernel/ports/transport.js'
import type { Droppable } from './backlog.js'
import { Backlog } from './backlog.js'

const [TOLD, OLDEST] = [1 as GroupId, 2 as GroupId]
const KINDS = {
  kept: () => undefined,
  latest: (topic: number): Droppable => ({ topic, policy: 'latest', told: [] }),
  told: (topic: number): Droppable => ({ topic, policy: 'latest', told: [{ group: TOLD, notice: 'told' }] }),
  oldest: (topic: number): Droppable => ({ topic, policy: 'drop-oldest', told: [{ group: OLDEST, notice: 'oldest' }] }),
} as const

const message = fc.record({
  kind: fc.constantFrom('kept', 'latest', 'told', 'oldest'),
  topic: fc.nat(4),
  byteLength: fc.integer({ min: 1, max: 100 }),
})

describe('Backlog', () => {
  it('leaves out what a newer message replaces, and the oldest, and says where', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 400 }), (messages) => {
        const leftOut = { conflatedCount: 0, droppedCount: 0 }
        const backlog = new Backlog<number | string>(4_000, leftOut)
        for (const [index, { kind, topic, byteLength }] of messages.entries())
          backlog.push(index, byteLength, KINDS[kind](topic))
        const came = [...backlog.frames((text) => text)]
        const oldest = messages.flatMap(({ kind, byteLength }, index) =>
          kind === 'oldest' ? [{ index, byteLength }] : [],
        )
        let oldestBytes = 0
        const isKept = (index: number) => {
          const one = messages[index]
          if (one === undefined || one.kind === 'kept' || one.kind === 'oldest') return true
          const isSame = ({ kind, topic }: typeof one) => topic === one.topic && (kind === 'latest' || kind === 'told')
          return !messages.slice(index + 1).some(isSame)
        }
        // The newest ones of a quarter of the limit.
        const dropped = new Set<number>()
        for (const { index, byteLength } of oldest.toReversed()) {
          oldestBytes += byteLength
          if (oldestBytes > 1_000 && index !== oldest.at(-1)?.index) dropped.add(index)
        }
        const expected = messages.flatMap((_, index) => (isKept(index) && !dropped.has(index) ? [index] : []))
        expect(came.filter((one) => typeof one === 'number')).toEqual(expected)
        expect(backlog.byteLength).toBe(expected.reduce((sum, index) => sum + (messages[index]?.byteLength ?? 0), 0))
        expect(leftOut.conflatedCount + leftOut.droppedCount).toBe(messages.length - expected.length)
        for (const [notice, kind] of [
          ['told', 'told'],
          ['oldest', 'oldest'],
        ] as const) {
          for (const missing of messages.keys()) {
            if (messages[missing]?.kind !== kind || expected.includes(missing)) continue
            const next = came.findIndex((one) => typeof one === 'number' && one > missing)
            const last = came.findLastIndex(
              (one) => typeof one === 'number' && one < missing && messages[one]?.kind === kind,
            )
            expect(came.slice(last + 1, next < 0 ? undefined : next)).toContain(notice)
          }
        }
      }),
    )
  })
})
