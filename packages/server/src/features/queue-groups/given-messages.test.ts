import { describe, expect, it } from 'vitest'
import { GivenMessages } from './given-messages.js'

const given = (dedupeMaxIds: number, dedupeWindowMs = 1_000) => new GivenMessages({ dedupeMaxIds, dedupeWindowMs })

describe('GivenMessages', () => {
  it('remembers as many messages as it may, whatever the number of their groups', () => {
    const messages = given(100)
    messages.remember('jobs-1', 1, 0)
    for (let index = 0; index < 50; index++)
      for (let group = 2; group < 34; group++) messages.remember(`evil-${index}`, group, 0)
    expect(messages.has('jobs-1', 1, 0)).toBe(true)
    expect(messages.has('jobs-1', 2, 0)).toBe(false)
    expect(messages.has('evil-49', 33, 0)).toBe(true)
  })

  it('forgets the oldest messages, and none of the last ones', () => {
    const messages = given(10)
    for (let index = 0; index < 100; index++) {
      messages.remember(`${index}`, 1, 0)
      const known = [...Array(index + 1).keys()].filter((earlier) => messages.has(`${earlier}`, 1, 0))
      expect(known.length).toBeGreaterThanOrEqual(Math.min(index + 1, 10))
      expect(known.length).toBeLessThanOrEqual(20)
      expect(known.at(-1)).toBe(index)
    }
  })

  it('forgets a message after its time, which a later group does not prolong', () => {
    const messages = given(10)
    messages.remember('a', 1, 0)
    messages.remember('a', 2, 999)
    expect([messages.has('a', 1, 999), messages.has('a', 2, 999)]).toEqual([true, true])
    expect([messages.has('a', 1, 1_000), messages.has('a', 2, 1_000)]).toEqual([false, false])
    messages.remember('a', 3, 1_001)
    expect([messages.has('a', 2, 1_001), messages.has('a', 3, 1_001)]).toEqual([false, true])
  })

  it.each([given(0), given(10, 0)])('remembers nothing when it is off', (messages) => {
    messages.remember('a', 1, 0)
    expect(messages.has('a', 1, 0)).toBe(false)
  })
})
