import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { contains } from 'webmq-client/protocol'
import { GlobBudget } from './subscriptions.js'

/** What was added, and what stands for it. */
class Recorder {
  readonly added: string[] = []
  readonly broader = new Set<string>()
  readonly budget = new GlobBudget({
    broaden: (pattern) => {
      expect(this.broader.has(pattern)).toBe(false)
      this.broader.add(pattern)
    },
    narrow: (pattern) => {
      expect(this.broader.delete(pattern)).toBe(true)
    },
  })

  add(...patterns: string[]): void {
    for (const pattern of patterns) {
      this.added.push(pattern)
      this.budget.add(pattern)
    }
  }

  delete(...patterns: string[]): void {
    for (const pattern of patterns) {
      this.added.splice(this.added.indexOf(pattern), 1)
      this.budget.delete(pattern)
    }
  }

  /** Globs that are needed: all that no broader one contains. */
  get globs(): string[] {
    const all = [...this.added, ...this.broader]
    return all.filter((pattern) => !all.some((other) => other !== pattern && contains(other, pattern)))
  }
}

function many(count: number, patternOf: (index: number) => string): string[] {
  return Array.from({ length: count }, (_, index) => patternOf(index))
}

describe('GlobBudget', () => {
  it('leaves 64 globs alone', () => {
    const recorder = new Recorder()
    recorder.add(...many(64, (index) => `room.${index}.*.#`))
    expect(recorder.broader.size).toBe(0)
  })

  it('replaces those that begin alike, as far down as it can', () => {
    const recorder = new Recorder()
    recorder.add(
      'other.*.#',
      ...many(10, (index) => `app.user.${index}.*.#`),
      ...many(200, (index) => `app.room.${index}.*.#`),
    )
    expect([...recorder.broader]).toEqual(['app.room.*.#'])
    expect(recorder.globs).toHaveLength(12)
  })

  it('replaces all when nothing begins alike', () => {
    const recorder = new Recorder()
    recorder.add(...many(200, (index) => `tenant${index}.*.#`))
    expect([...recorder.broader]).toEqual(['*.#'])
    const ends = new Recorder()
    ends.add(...many(200, (index) => `*.#.${index}`))
    expect([...ends.broader]).toEqual(['*.#'])
  })

  it('gives a broader one up when few are left, and forgets everything in the end', () => {
    const recorder = new Recorder()
    const patterns = many(200, (index) => `room.${index}.*.#`)
    recorder.add(...patterns)
    recorder.delete(...patterns.slice(0, 191))
    expect([...recorder.broader]).toEqual(['room.*.#'])
    recorder.delete(...patterns.slice(191, 192))
    expect(recorder.broader.size).toBe(0)
    recorder.delete(...patterns.slice(192))
    expect(recorder.budget.madeCount).toBe(0)
  })

  it('never has more than its bound, whatever comes and goes', () => {
    const words = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')
    const pattern = fc
      .tuple(fc.array(words, { maxLength: 3 }), fc.constantFrom('*.#', '*.#.x', '*.#.y'))
      .map(([head, tail]) => [...head, tail].join('.'))
    fc.assert(
      fc.property(
        fc.uniqueArray(pattern, { minLength: 100, maxLength: 400 }),
        fc.infiniteStream(fc.nat()),
        (all, chance) => {
          const recorder = new Recorder()
          recorder.add(...all)
          expect(recorder.budget.madeCount).toBeLessThanOrEqual(64)
          expect(recorder.globs.length).toBeLessThanOrEqual(64)
          for (const _ of all) {
            const at = (chance.next().value ?? 0) % recorder.added.length
            recorder.delete(recorder.added[at] ?? '')
            if (recorder.broader.size === 0) expect(recorder.budget.madeCount).toBe(recorder.added.length)
          }
          expect(recorder.broader.size).toBe(0)
          expect(recorder.budget.madeCount).toBe(0)
        },
      ),
      { numRuns: 30 },
    )
  })
})
