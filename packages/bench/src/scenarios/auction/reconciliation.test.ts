import { expect, it } from 'vitest'
import { reconcile } from './reconciliation.js'

it('finds nothing when every connection has seen every accepted bid', () => {
  const seen = new Map([
    [1, 3],
    [2, 3],
  ])
  const nobody = { accepted: [1], connections: 0, seen: new Map() }
  expect(reconcile([{ accepted: [1, 2], connections: 3, seen }, nobody])).toEqual({
    acceptedCount: 3,
    expectedCount: 6,
    missingCount: 0,
    unknownCount: 0,
    holeCount: 0,
  })
})

it('counts what some or all connections have missed, and what Redis has never accepted', () => {
  const seen = new Map([
    [1, 3],
    [2, 1],
    [9, 2],
  ])
  expect(reconcile([{ accepted: [1, 2, 3], connections: 3, seen }])).toMatchObject({
    expectedCount: 9,
    missingCount: 2 + 3,
    unknownCount: 2,
  })
})

it('finds a record with a hole', () => {
  const seen = new Map([
    [1, 1],
    [3, 1],
  ])
  expect(reconcile([{ accepted: [1, 3], connections: 1, seen }])).toMatchObject({ missingCount: 0, holeCount: 1 })
})
