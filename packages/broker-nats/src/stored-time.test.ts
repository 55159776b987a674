import { expect, it } from 'vitest'
import { fingerprintOfTime } from 'webmq-server/brokers'
import { fingerprintOfStored, nanosecondsOf } from './stream-message.js'

it.each([
  ['2025-11-24T16:00:00.123456789Z', '1764000000123456789'],
  ['2025-11-24T16:00:00.1Z', '1764000000100000000'],
  ['2025-11-24T16:00:00Z', '1764000000000000000'],
  ['0001-01-01T00:00:00Z', undefined],
  ['yesterday', undefined],
])('reads the nanoseconds of %s', (text, expected) => {
  expect(nanosecondsOf(text)).toBe(expected)
})

it('tells messages of one second from each other', () => {
  expect(fingerprintOfStored('1764000000123456789')).toBe(fingerprintOfTime(1_764_000_000, 123_456_789))
  expect(fingerprintOfStored('1764000000123456789')).not.toBe(fingerprintOfStored('1764000000123456790'))
})
