import { describe, expect, it } from 'vitest'
import { RetainRules } from '../../../kernel/ports/retain-rules.js'
import { type RetainedMessage, RetainedSet } from './retained-set.js'

const LIMITS = { maxKeys: 4, maxBytes: 1_000 }
const START = 100

const create = () => new RetainedSet(new RetainRules(['k.#'], LIMITS), START)
const message = (key: string, offset: number, text: string): RetainedMessage => ({
  key,
  offset,
  fingerprint: offset,
  payload: new TextEncoder().encode(text),
  isBinary: false,
  attributes: undefined,
})

function stateOf(set: RetainedSet, after = 0): string[] {
  const found: RetainedMessage[] = []
  set.collect({ after, wants: () => true, limit: Number.POSITIVE_INFINITY }, found, { left: 1_000_000 })
  return found.map(({ key, offset, payload }) => `${key}@${offset}=${new TextDecoder().decode(payload)}`)
}

describe('RetainedSet', () => {
  it('keeps the last message of each key, in the order of offsets', () => {
    const set = create()
    for (const [key, offset] of [
      ['k.a', 101],
      ['k.b', 102],
      ['other', 103],
      ['k.a', 104],
    ] as const)
      set.note(message(key, offset, 'v'))
    expect(stateOf(set)).toEqual(['k.b@102=v', 'k.a@104=v'])
    expect(stateOf(set, 102)).toEqual(['k.a@104=v'])
    expect(set.stats()).toEqual({ keyCount: 2, byteCount: 8, droppedCount: 0 })
  })

  it('takes the copy of a message from before it began, and of a newer one than it has', () => {
    const set = create()
    expect(set.noteCopy(message('k.a', 50, 'old'), 110)).toBe(true)
    expect(set.noteCopy(message('k.a', 60, 'newer'), 111)).toBe(true)
    set.note(message('k.b', 112, 'b'))
    expect(stateOf(set)).toEqual(['k.a@60=newer', 'k.b@112=b'])
    expect(set.get('k.a')?.recordOffset).toBe(111)
  })

  it('ignores a copy that is older than its message, or that a removal has overtaken, and says so', () => {
    const set = create()
    set.note(message('k.a', 101, 'new'))
    set.note(message('k.b', 102, 'b'))
    set.note(message('k.b', 103, ''))
    expect(set.noteCopy(message('k.a', 50, 'old'), 110)).toBe(false)
    expect(set.noteCopy(message('k.b', 102, 'b'), 111)).toBe(false)
    // It would know this one, unless it was removed.
    expect(set.noteCopy(message('k.c', 101, 'c'), 112)).toBe(false)
    expect(stateOf(set)).toEqual(['k.a@101=new', 'k.b@103='])
    expect(set.noteCopy(message('k.a', 101, 'new'), 113)).toBe(true)
    expect(set.get('k.a')?.recordOffset).toBe(113)
  })

  it('forgets old removals, and says from where on it knows all', () => {
    const set = create()
    let offset = START
    for (let index = 0; index < 20; index++) {
      set.note(message(`k.${index}`, ++offset, 'v'))
      set.note(message(`k.${index}`, ++offset, ''))
    }
    expect(set.stats().keyCount).toBe(0)
    const removals = stateOf(set)
    expect(removals.length).toBeLessThanOrEqual(2 * LIMITS.maxKeys)
    expect(removals).toHaveLength(stateOf(set, set.removalsCompleteAfter).length)
    expect(set.removalsCompleteAfter).toBeGreaterThan(START)
  })

  it('does not retain what exceeds the limits by far, and counts it', () => {
    const set = create()
    for (let index = 0; index < 10; index++) set.note(message(`k.${index}`, START + 1 + index, 'v'))
    expect(set.stats()).toMatchObject({ keyCount: 6, droppedCount: 4 })
    set.note(message('k.0', 200, 'x'.repeat(2_000)))
    expect(set.stats()).toMatchObject({ keyCount: 5, droppedCount: 5 })
    expect(stateOf(set, 199)).toEqual(['k.0@200='])
  })

  // Symptom to prevent: the payloads of replaced messages stay in memory.
  it('lets go of replaced messages', () => {
    const set = create()
    set.note(message('k.quiet', 101, 'v'))
    for (let offset = 102; offset < 20_000; offset++) set.note(message('k.busy', offset, 'v'))
    const budget = { left: 1_000_000 }
    set.collect({ after: 0, wants: () => true, limit: 10 }, [], budget)
    expect(1_000_000 - budget.left).toBeLessThan(20_000)
    expect(stateOf(set)).toEqual(['k.quiet@101=v', 'k.busy@19999=v'])
  })
})
