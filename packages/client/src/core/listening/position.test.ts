import { expect, it } from 'vitest'
import { isSeen } from './position.js'

it.each([
  ['e:5.aaaaa', 'e:5.aaaaa', true],
  ['e:4.zzzzz', 'e:5.aaaaa', true],
  ['e:6.aaaaa', 'e:5.zzzzz', false],
  // As numbers, not as text.
  ['e:9.aaaaa', 'e:10.aaaaa', true],
  ['e:10.aaaaa', 'e:9.aaaaa', false],
  // The epoch is the part before the last colon [P-8.1].
  ['a:b:4.aaaaa', 'a:b:5.aaaaa', true],
  ['a:x:4.aaaaa', 'a:b:5.aaaaa', false],
  // Another message at the same place.
  ['e:5.aaaaa', 'e:5.bbbbb', false],
  ['e:5.bbbbb', 'e:5.aaaaa', false],
  // Another epoch, another form, or that of an earlier server: unknown.
  ['f:4.aaaaa', 'e:5.aaaaa', false],
  ['e:17-1', 'e:17-2', false],
  ['e:17-1', 'e:17-1', true],
  ['e:4', 'e:5', false],
  ['e:4', 'e:5.aaaaa', false],
  ['e:6.aaaaa', 'e:5', false],
])('%s was seen by someone at %s: %s', (position, seen, expected) => {
  expect(isSeen(position, seen)).toBe(expected)
})

it('is not seen without a known position', () => {
  expect(isSeen('e:1.aaaaa', undefined)).toBe(false)
})
