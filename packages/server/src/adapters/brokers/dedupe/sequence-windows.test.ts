import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_PENDING_MESSAGES, SequenceWindows } from './duplicate-filter.js'

/** Notes a message; whether it was noted before. */
function noteIn(windows: SequenceWindows, node: string, sequence: number): boolean {
  const isKnown = windows.has(node, sequence)
  windows.note(node, sequence)
  return isKnown
}

describe('SequenceWindows', () => {
  it('finds what has come before, in any order, like a set', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ node: fc.constantFrom('a', 'b'), step: fc.integer({ min: -200, max: 300 }) }), {
          maxLength: 300,
        }),
        (steps) => {
          const windows = new SequenceWindows()
          const seen = new Set<string>()
          const newest = { a: 1_000, b: 1_000 }
          for (const { node, step } of steps) {
            const sequence = newest[node] + step
            newest[node] = Math.max(newest[node], sequence)
            const id = `${node} ${sequence}`
            expect(noteIn(windows, node, sequence)).toBe(seen.has(id))
            seen.add(id)
          }
        },
      ),
    )
  })

  it('forgets what lies further back than can be under way, and takes it for new', () => {
    const windows = new SequenceWindows()
    expect(noteIn(windows, 'a', 5)).toBe(false)
    expect(noteIn(windows, 'a', 5 + MAX_PENDING_MESSAGES - 1)).toBe(false)
    expect(noteIn(windows, 'a', 5)).toBe(true)
    expect(noteIn(windows, 'a', 5 + MAX_PENDING_MESSAGES)).toBe(false)
    expect(noteIn(windows, 'a', 5)).toBe(false)
  })

  it('starts over after a jump of more than the window', () => {
    const windows = new SequenceWindows()
    noteIn(windows, 'a', 7)
    expect(noteIn(windows, 'a', 7 + 10 * MAX_PENDING_MESSAGES)).toBe(false)
    expect(noteIn(windows, 'a', 7 + 9 * MAX_PENDING_MESSAGES + 32)).toBe(false)
  })

  it('counts beyond 32 bits', () => {
    const windows = new SequenceWindows()
    const large = 2 ** 40 + 5
    expect(noteIn(windows, 'a', large)).toBe(false)
    expect(noteIn(windows, 'a', large)).toBe(true)
    expect(noteIn(windows, 'a', large + 1)).toBe(false)
  })
})
