import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Deadlines } from './deadlines.js'

describe('Deadlines', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 0 })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const create = (onError: (error: unknown) => void = () => undefined) => new Deadlines({ now: Date.now, onError })

  it('fires every deadline once, in order, never early and at most 50 ms late', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ atMs: fc.nat(2_000), isCleared: fc.boolean() }), { maxLength: 60 }),
        (wanted) => {
          vi.useFakeTimers({ now: 0 })
          const deadlines = create()
          const fired: { atMs: number; nowMs: number }[] = []
          const set = wanted.map(({ atMs }) => deadlines.set(atMs, () => fired.push({ atMs, nowMs: Date.now() })))
          wanted.forEach(({ isCleared }, index) => {
            const deadline = set[index]
            if (isCleared && deadline !== undefined) deadlines.clear(deadline)
          })
          vi.advanceTimersByTime(3_000)
          const expected = wanted.filter(({ isCleared }) => !isCleared).map(({ atMs }) => atMs)
          expect(fired.map(({ atMs }) => atMs)).toEqual(expected.sort((a, b) => a - b))
          for (const { atMs, nowMs } of fired) {
            expect(nowMs).toBeGreaterThanOrEqual(atMs)
            expect(nowMs).toBeLessThanOrEqual(atMs + 50)
          }
          expect(deadlines.size).toBe(0)
          expect(vi.getTimerCount()).toBe(0)
        },
      ),
    )
  })

  it('costs one timer, however many deadlines there are', () => {
    const deadlines = create()
    for (let index = 0; index < 10_000; index++) deadlines.set(1_000 + (index % 500), () => undefined)
    expect(vi.getTimerCount()).toBe(1)
    deadlines.stop()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits for a deadline that is farther away than a timer of Node reaches', () => {
    const deadlines = create()
    const fire = vi.fn()
    const farMs = 2 ** 31 + 1_000
    deadlines.set(farMs, fire)
    vi.advanceTimersByTime(farMs - 1)
    expect(fire).not.toHaveBeenCalled()
    vi.advanceTimersByTime(51)
    expect(fire).toHaveBeenCalledOnce()
  })

  it('lets one deadline set another while it fires', () => {
    const deadlines = create()
    const fired: number[] = []
    deadlines.set(100, () => {
      fired.push(1)
      deadlines.set(200, () => fired.push(2))
    })
    vi.advanceTimersByTime(300)
    expect(fired).toEqual([1, 2])
  })

  it('reports a deadline that fails and fires the others', () => {
    const onError = vi.fn()
    const deadlines = create(onError)
    const fire = vi.fn()
    deadlines.set(10, () => {
      throw new Error('a bug')
    })
    deadlines.set(10, fire)
    vi.advanceTimersByTime(100)
    expect(onError).toHaveBeenCalledOnce()
    expect(fire).toHaveBeenCalledOnce()
  })
})
