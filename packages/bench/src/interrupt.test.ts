import { describe, expect, it } from 'vitest'
import { Interrupt } from './interrupt.js'

describe('an interrupt', () => {
  it('ends a run that has measured nothing', () => {
    const user = new AbortController()
    const interrupt = new Interrupt(user.signal)
    expect([interrupt.isRequested, interrupt.broken.aborted]).toEqual([false, false])
    user.abort('by the user')
    expect([interrupt.isRequested, interrupt.broken.aborted]).toEqual([true, true])
    expect(interrupt.broken.reason).toBe('by the user')
    expect(new Interrupt(user.signal).broken.aborted).toBe(true)
  })

  it('leaves a run that holds it to end by itself', () => {
    const user = new AbortController()
    const interrupt = new Interrupt(user.signal)
    interrupt.hold()
    user.abort()
    expect([interrupt.isRequested, interrupt.broken.aborted]).toEqual([true, false])
  })
})
