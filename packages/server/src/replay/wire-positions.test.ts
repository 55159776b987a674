import { expect, it } from 'vitest'
import { WirePositions } from './wire-positions.js'

it('writes the offset alone while there is one epoch [P-8.8]', () => {
  const positions = new WirePositions()
  expect(positions.give({ epoch: 'a', offset: 36 })).toBe('a:10')
  expect(positions.of({ epoch: 'a', offset: 37 })).toBe(37)
  expect(positions.of(undefined)).toBeUndefined()
})

it('writes positions in full from the first one of another epoch on, whichever connection was given it', () => {
  const positions = new WirePositions()
  positions.give({ epoch: 'a', offset: 1 })
  expect(positions.give({ epoch: 'b', offset: 1 })).toBe('b:1')
  // Some connections know `a` and others `b`; what is on its way from the old log may still come.
  expect(positions.of({ epoch: 'a', offset: 2 })).toBe('a:2')
  expect(positions.of({ epoch: 'b', offset: 2 })).toBe('b:2')
})

it('writes a live message of another epoch in full', () => {
  const positions = new WirePositions()
  positions.give({ epoch: 'a', offset: 1 })
  expect(positions.of({ epoch: 'b', offset: 1 })).toBe('b:1')
  expect(positions.of({ epoch: 'b', offset: 2 })).toBe('b:2')
})

it('writes positions in full when a connection listens that was given none', () => {
  const positions = new WirePositions()
  positions.giveNone()
  positions.give({ epoch: 'a', offset: 1 })
  expect(positions.of({ epoch: 'a', offset: 2 })).toBe('a:2')
})
