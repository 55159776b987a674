import { expect, it, vi } from 'vitest'
import { ReadTurns } from './read-turns.js'

// Symptom: pings waited 20 ms. Cause: a read that looks at no message took no step, so a turn had room for all of them.
it('begins a bounded number of reads per turn, even of reads that look at nothing', async () => {
  const turns = new ReadTurns()
  let count = 0
  const reads = Array.from({ length: 1_000 }, async () => {
    await turns.run(() => {
      count++
      return true
    })
  })
  expect(count).toBe(256)
  let before = count
  while (count < 1_000) {
    await new Promise((resolve) => setImmediate(resolve))
    expect(count - before).toBeLessThanOrEqual(256)
    before = count
  }
  await Promise.all(reads)
})

// Symptom: reads of nothing took ever more memory, and each a turn of its connection. Cause: what was paid for a read that
// was done waited for a turn, too, for nobody.
it('lets a reader wait for a turn only while its read goes on', async () => {
  const turns = new ReadTurns()
  const meter = { charge: vi.fn(), spend: vi.fn() }
  await turns.run(() => true, { isClosed: false, meter })
  expect([meter.charge.mock.calls, meter.spend.mock.calls]).toEqual([[[4]], []])
  let slices = 0
  await turns.run(() => ++slices === 3, { isClosed: false, meter })
  expect([meter.charge, meter.spend].map(({ mock }) => mock.calls.length)).toEqual([2, 2])
})
