import { describe, expect, it } from 'vitest'
import { KeyLedger } from './key-ledger.js'

/** The verdict on each number; the n-th comes after n milliseconds. */
function receive(numbers: readonly number[]) {
  const ledger = new KeyLedger()
  const arrivals = numbers.map((number, index) => ledger.receive(number, index * 1_000))
  const { first, next, holes } = ledger
  return { arrivals, first, next, holes }
}

describe('the messages of one key at one user', () => {
  it('begin with any number, and go on without a hole', () => {
    expect(receive([7, 8, 9])).toEqual({
      arrivals: ['delivered', 'delivered', 'delivered'],
      first: 7,
      next: 10,
      holes: [],
    })
  })

  it('leave a hole where numbers are missing, with the times around it', () => {
    expect(receive([0, 1, 5]).holes).toEqual([{ from: 2, to: 5, beforeUs: 1_000, afterUs: 2_000 }])
  })

  it('are out of order when they fill a hole, and doubled after that', () => {
    const { arrivals, holes } = receive([0, 4, 2, 2])
    expect(arrivals).toEqual(['delivered', 'delivered', 'out of order', 'doubled'])
    expect(holes.map(({ from, to }) => [from, to])).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('are doubled when they came before', () => {
    expect(receive([3, 3, 4, 3]).arrivals).toEqual(['delivered', 'doubled', 'delivered', 'doubled'])
  })

  it('are out of order when they come behind the first one that they precede', () => {
    const { arrivals, first, holes } = receive([5, 3, 3])
    expect(arrivals).toEqual(['delivered', 'out of order', 'doubled'])
    expect(first).toBe(3)
    expect(holes.map(({ from, to }) => [from, to])).toEqual([[4, 5]])
  })
})
