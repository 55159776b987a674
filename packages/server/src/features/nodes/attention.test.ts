import { describe, expect, it } from 'vitest'
import { Attention } from './attention.js'

const VALID_MS = 8_000

function create() {
  const clock = { nowMs: 5_000, changedCount: 0 }
  const attention = new Attention({
    now: () => clock.nowMs,
    validMs: VALID_MS,
    changed: () => {
      clock.changedCount++
    },
  })
  /** Looks every half second, as the timer does. */
  const pass = (ms: number) => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 500) {
      clock.nowMs += Math.min(500, leftMs)
      attention.look()
    }
  }
  return { attention, clock, pass }
}

describe('the term of a node', () => {
  it('stays while the node looks, and the broker accepts its leases', () => {
    const { attention, clock, pass } = create()
    for (let step = 0; step < 20; step++) {
      pass(3_000)
      attention.leased(clock.nowMs - 1_000)
    }
    expect([attention.look(), clock.changedCount]).toEqual([1, 0])
  })

  it('ends when the node stood still, once, and others are told', () => {
    const { attention, clock, pass } = create()
    clock.nowMs += 900
    expect(attention.look()).toBe(1)
    clock.nowMs += 3_000
    expect([attention.look(), attention.look(), clock.changedCount]).toEqual([2, 2, 1])
    pass(2_000)
    expect(attention.look()).toBe(2)
  })

  it('ends when no lease was accepted for as long as one is valid', () => {
    const { attention, clock, pass } = create()
    pass(VALID_MS)
    expect(attention.look()).toBe(1)
    pass(500)
    expect([attention.look(), clock.changedCount]).toEqual([2, 1])
    // The new term has the time of a lease: nobody knew of it before.
    pass(VALID_MS - 500)
    expect(attention.look()).toBe(2)
  })

  it('ends with a lease that was accepted too late', () => {
    const { attention, clock, pass } = create()
    pass(7_900)
    clock.nowMs += 200
    attention.leased(clock.nowMs - 5_000)
    expect(attention.look()).toBe(2)
  })
})
