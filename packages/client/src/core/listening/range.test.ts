import { expect, it } from 'vitest'
import { checkRange } from '../../dev/checks/range.js'
import { msOf } from './range.js'

it.each([
  [0, 0],
  [1_500, 1_500],
  ['250ms', 250],
  ['10s', 10_000],
  ['2m', 120_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
])('reads %j as %i milliseconds', (text, ms) => {
  expect(msOf(text)).toBe(ms)
})

it.each([
  '',
  '2',
  '2 m',
  'm',
  '2m ',
  '-1s',
  '1.5h',
  '2w',
  '999999999999999d',
  -1,
  0.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
])('refuses %j', (text) => {
  expect(() => checkRange({ rewind: text })).toThrowError(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
})
