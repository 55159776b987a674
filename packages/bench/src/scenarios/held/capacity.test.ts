import { describe, expect, it } from 'vitest'
import { connectionsThatFit, raiseDescriptorLimit, readCapacity } from './capacity.js'

describe('the connections that fit a machine', () => {
  it('are bounded by memory, by descriptors, and by a million', () => {
    const plenty = { availableBytes: 1e12, freeDescriptors: 1e8 }
    expect(connectionsThatFit(plenty)).toBe(1_000_000)
    expect(connectionsThatFit({ ...plenty, availableBytes: 17_000 * 20_000 })).toBe(15_000)
    expect(connectionsThatFit({ ...plenty, freeDescriptors: 60_000 })).toBe(20_000)
    expect(connectionsThatFit({ availableBytes: 0, freeDescriptors: 0 })).toBe(1_000)
  })

  it('fit this one', () => {
    const capacity = readCapacity()
    expect(capacity.availableBytes).toBeGreaterThan(1e6)
    expect(capacity.freeDescriptors).toBeGreaterThan(0)
  })
})

describe('the limit of descriptors', () => {
  it('stays when it is enough, and else is raised or the system says why not', () => {
    const { limit } = raiseDescriptorLimit(1)
    expect(raiseDescriptorLimit(limit)).toEqual({ limit, refusal: null })
    const raised = raiseDescriptorLimit(2 ** 40)
    expect(raised.limit).toBeGreaterThanOrEqual(limit)
    expect(raised.refusal).toMatch(/./)
  })
})
