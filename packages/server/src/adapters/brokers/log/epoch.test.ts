import { expect, it } from 'vitest'
import { epochOfText, newEpoch } from './epoch.js'

it('returns epochs of 6 characters that may stand in a position', () => {
  const epochs = Array.from({ length: 1_000 }, newEpoch)
  for (const epoch of epochs) expect(epoch).toMatch(/^[\w-]{6}$/)
  expect(new Set(epochs).size).toBe(epochs.length)
})

it('returns one epoch for one text, and others for other texts', () => {
  const [first, again, other] = [
    epochOfText('1718000000123456789'),
    epochOfText('1718000000123456789'),
    epochOfText(''),
  ]
  expect(first).toMatch(/^[\w-]{6}$/)
  expect(again).toBe(first)
  expect(other).not.toBe(first)
})
