import { expect, it } from 'vitest'
import { PositionBase } from './position-base.js'

it('completes positions with the last epoch [P-8.8]', () => {
  const base = new PositionBase()
  base.note('a:b:5')
  expect(base.complete('6')).toBe('a:b:6')
  expect(base.complete('c:1')).toBe('c:1')
  expect(base.complete('2')).toBe('c:2')
  base.note(undefined)
  expect(base.complete('3')).toBe('c:3')
})

it('returns no position without one, or without an epoch', () => {
  const base = new PositionBase()
  expect(base.complete(undefined)).toBeUndefined()
  expect(base.complete('6')).toBeUndefined()
  base.note('a:5')
  base.clear()
  expect(base.complete('6')).toBeUndefined()
})
