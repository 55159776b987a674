import { describe, expect, it } from 'vitest'
import { Budget } from './budget.js'

describe('the budget of a hostile client', () => {
  it('lets through no more operations than the rate, a short burst aside', async () => {
    const over = new AbortController()
    const budget = new Budget({ operationsPerSecond: 1_000, bytesPerSecond: 1e9 }, over.signal)
    const startMs = performance.now()
    for (let place = 0; place < 100; place++) await budget.spend(10)
    // 100 operations at 1,000 per second, less the burst of 20 ms.
    expect(performance.now() - startMs).toBeGreaterThan(75)
  })

  it('makes up for a large message by the time that its bytes take', async () => {
    const over = new AbortController()
    const budget = new Budget({ operationsPerSecond: 1e6, bytesPerSecond: 1_000_000 }, over.signal)
    const startMs = performance.now()
    await budget.spend(100_000)
    expect(performance.now() - startMs).toBeGreaterThan(75)
  })

  it('ends with the attack', async () => {
    const over = new AbortController()
    const budget = new Budget({ operationsPerSecond: 1, bytesPerSecond: 1 }, over.signal)
    const waiting = budget.spend(1_000)
    over.abort(new Error('the attack is over'))
    await expect(waiting).rejects.toThrow()
    await expect(budget.spend(0)).rejects.toThrow('the attack is over')
  })
})
