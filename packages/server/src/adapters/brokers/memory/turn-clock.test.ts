import { expect, it } from 'vitest'
import { turnClock } from './turn-clock.js'

it('is read once per turn of the event loop', async () => {
  let readCount = 0
  const now = turnClock(() => ++readCount)
  expect([now(), now(), now()]).toEqual([1, 1, 1])
  await new Promise(setImmediate)
  expect([now(), now()]).toEqual([2, 2])
})
