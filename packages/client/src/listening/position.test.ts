import { expect, it } from 'vitest'
import { isSeen } from './position.js'

it.each([
  ['e:5', 'e:5', true],
  ['e:4', 'e:5', true],
  ['e:6', 'e:5', false],
  // As numbers, not as text.
  ['e:9', 'e:10', true],
  ['e:10', 'e:9', false],
  // The epoch is the part before the last colon [P-8.1].
  ['a:b:4', 'a:b:5', true],
  ['a:x:4', 'a:b:5', false],
  // Another epoch, or not a number: unknown.
  ['f:4', 'e:5', false],
  ['e:17-1', 'e:17-2', false],
  ['e:17-1', 'e:17-1', true],
])('%s was seen by someone at %s: %s', (position, seen, expected) => {
  expect(isSeen(position, seen)).toBe(expected)
})

it('is not seen without a known position', () => {
  expect(isSeen('e:1', undefined)).toBe(false)
})
