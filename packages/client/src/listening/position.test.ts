import { expect, it } from 'vitest'
import { isSeen, moved } from './position.js'

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

it.each([
  // Without partitions, a position stands alone.
  [undefined, 'e:1', 'e:1'],
  ['e:1', 'e:2', 'e:2'],
  ['e:2', 'e:1', 'e:2'],
  ['e:2', 'f:1', 'f:1'],
  ['e:2', undefined, 'e:2'],
  // The newest place in each partition.
  ['0.a:1,1.b:2', '1.b:3', '0.a:1,1.b:3'],
  ['0.a:1,1.b:2', '1.b:2', '0.a:1,1.b:2'],
  ['0.a:1,1.b:2', '1.c:1', '0.a:1,1.c:1'],
  ['0.a:1', '10.b:1', '0.a:1,10.b:1'],
  ['1.b:1,11.b:1', '1.b:2', '1.b:2,11.b:1'],
  ['0.a:9,1.b:2', '0.a:1,1.b:3,2.c:1', '0.a:9,1.b:3,2.c:1'],
  // From a system with partitions to one without, and back.
  ['0.a:1,1.b:2', 'e:1', 'e:1'],
  ['e:1', '0.a:1', '0.a:1'],
])('%s and then %s is %s', (seen, position, expected) => {
  expect(moved(seen, position)).toBe(expected)
})

it.each([
  [undefined, 'e:1', undefined],
  ['e:1', 'e:2', 'e:2'],
  ['e:1', 'f:2', 'e:1'],
  ['0.a:1,1.b:2', '1.b:3,2.c:7', '0.a:1,1.b:3'],
  ['0.a:1,1.b:2', '0.x:9', '0.a:1,1.b:2'],
  ['0.a:1', 'e:9', '0.a:1'],
  ['e:1', '0.a:9', 'e:1'],
])('%s catches up with %s only where that is known to be ahead: %s', (seen, position, expected) => {
  expect(moved(seen, position, true)).toBe(expected)
})
