import { describe, expect, it } from 'vitest'
import { ReplayAllowance } from './allowance.js'

describe('ReplayAllowance', () => {
  it('gives what it holds at once and regains it within a second', () => {
    const allowance = new ReplayAllowance(1_000)
    const answers = [
      [600, 0],
      [401, 0],
      [400, 0],
      [1, 0],
      [500, 500],
      [1, 500],
      [1_000, 1_500],
      [1_001, 9_000],
    ].map(([byteCount = 0, nowMs = 0]) => allowance.take(byteCount, nowMs))
    expect(answers).toEqual([true, false, true, false, true, false, true, false])
  })

  it('gives a page back at once when the next one is asked for, and only once', () => {
    const allowance = new ReplayAllowance(1_000)
    allowance.take(900, 0)
    allowance.endPage('e:1', 0)
    expect(allowance.waitMs(0)).toBe(150)
    allowance.onAsked('e:2', 0)
    expect(allowance.waitMs(0)).toBe(150)
    allowance.onAsked('e:1', 0)
    expect(allowance.waitMs(0)).toBe(0)
    expect(allowance.take(1_000, 0)).toBe(true)
    allowance.onAsked('e:1', 0)
    expect(allowance.take(1, 0)).toBe(false)
  })

  it('does not give back twice what time has given back', () => {
    const allowance = new ReplayAllowance(1_000)
    allowance.take(900, 0)
    allowance.endPage('e:1', 0)
    expect(allowance.take(1_000, 900)).toBe(true)
    allowance.onAsked('e:1', 900)
    expect(allowance.take(1, 900)).toBe(false)
  })

  it('gives nothing back when the clock goes backwards', () => {
    const allowance = new ReplayAllowance(10)
    expect([allowance.take(10, 1_000), allowance.take(1, 500)]).toEqual([true, false])
  })
})
