import { expect, it } from 'vitest'
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
