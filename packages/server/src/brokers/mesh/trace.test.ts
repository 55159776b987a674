import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeTrace, encodeTrace } from './log-frames.js'
import { Trace, TraceWriter, type Vector } from './trace.js'

interface Logged {
  readonly origin: number
  readonly skip: number
}

const logged = fc.record({
  origin: fc.constantFrom(0, 1, 2, 300),
  skip: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(2 ** 40) }),
})
const same = (origin: number) => origin

/** What stands up to each offset, by counting. */
function vectorsOf(messages: readonly Logged[]): Map<number, number>[] {
  const vectors = [new Map<number, number>()]
  for (const { origin, skip } of messages) {
    const vector = new Map(vectors.at(-1))
    vectors.push(vector.set(origin, (vector.get(origin) ?? 0) + skip + 1))
  }
  return vectors
}

const entriesOf = (vector: Vector | undefined) => [...(vector ?? [])].sort(([a], [b]) => a - b)

describe('a trace', () => {
  it('says for every place what stands before it, whatever the turns', () => {
    fc.assert(
      fc.property(fc.array(fc.array(logged, { maxLength: 30 }), { maxLength: 20 }), (turns) => {
        const writer = new TraceWriter()
        const trace = new Trace()
        for (const turn of turns) {
          for (const { origin, skip } of turn) writer.note(origin, skip)
          trace.push(writer.take(), same)
        }
        const vectors = vectorsOf(turns.flat())
        expect(trace.endOffset).toBe(vectors.length - 1)
        for (const [offset, vector] of vectors.entries()) {
          expect(entriesOf(trace.at(offset))).toEqual(entriesOf(vector))
        }
        expect(trace.at(vectors.length)).toBeUndefined()
      }),
    )
  })

  it('is the same at another node, that has other numbers for the origins', () => {
    const writer = new TraceWriter()
    const trace = new Trace(7, new Map([[1, 5]]))
    for (const origin of [0, 0, 1, 2, 1]) writer.note(origin, 0)
    trace.push(writer.take(), same)
    const told = decodeTrace(encodeTrace(9, trace))
    expect(told).toMatchObject({ index: 9, startOffset: 7, endOffset: 12 })
    const there = new Trace(told.startOffset, new Map(told.start.map(([index, sequence]) => [index + 100, sequence])))
    there.push(told.runs, (index) => index + 100)
    for (let offset = 7; offset <= 12; offset++) {
      const vector = entriesOf(trace.at(offset)).map(([index, sequence]) => [index + 100, sequence])
      expect(entriesOf(there.at(offset))).toEqual(vector)
    }
  })

  it('lets the oldest go, within 64 KiB, and says so', () => {
    const writer = new TraceWriter()
    const trace = new Trace()
    const messageCount = 200_000
    for (let index = 0; index < messageCount; index++) {
      writer.note(index % 3, 0)
      if (index % 100 === 99) trace.push(writer.take(), same)
    }
    expect(trace.runs.length).toBeLessThanOrEqual(64 * 1_024)
    expect(trace.startOffset).toBeGreaterThan(0)
    expect(messageCount - trace.startOffset).toBeGreaterThan(10_000)
    expect(trace.at(trace.startOffset - 1)).toBeUndefined()
    expect(entriesOf(trace.at(messageCount))).toEqual([
      [0, 66_667],
      [1, 66_667],
      [2, 66_666],
    ])
    expect(entriesOf(trace.at(195_001))).toEqual([
      [0, 65_001],
      [1, 65_000],
      [2, 65_000],
    ])
  })

  it('refuses runs that break off', () => {
    expect(() => new Trace().push(Uint8Array.of(0x80), same)).toThrow(RangeError)
    expect(() => new Trace().push(Uint8Array.of(0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), same)).toThrow(
      RangeError,
    )
  })
})
