import { describe, expect, it } from 'vitest'
import { reconcile } from '../../examples/auction/gateway/reconcile.js'
import type { AuctionEvent } from '../../examples/auction/src/events.js'

const bid = (seq: number, amount = 100 * seq): AuctionEvent => {
  return { type: 'bid', item: 'a', seq, ts_us: seq, amount, bidder: 'Ada', bidId: `b${seq}` }
}
const closed: AuctionEvent = { type: 'closed', item: 'a', seq: 4, ts_us: 4, winner: 'Ada', amount: 300 }
const recorded = [bid(1), bid(2), bid(3), closed]

function kinds(seen: readonly AuctionEvent[], record: readonly AuctionEvent[] = recorded): string[] {
  const differences = reconcile(new Map([['a', record]]), new Map([['one', new Map([['a', seen]])]]))
  return differences.map(({ client, kind, seq }) => `${client} ${kind} ${seq}`)
}

describe('a reconciliation', () => {
  it('finds nothing when a client has got all events once and in order', () => {
    expect(kinds(recorded)).toEqual([])
  })

  it.each([
    ['that is missing', [bid(1), bid(3), closed], ['one missing 2']],
    ['that came twice', [bid(1), bid(1), bid(2), bid(3), closed], ['one double 1']],
    ['that came late', [bid(2), bid(1), bid(3), closed], ['one out-of-order 1']],
    ['with another amount', [bid(1), bid(2, 7), bid(3), closed], ['one different 2']],
    ['that Redis does not have', [...recorded, bid(5)], ['one unknown 5']],
  ])('finds an event of a client %s', (_, seen, expected) => {
    expect(kinds(seen)).toEqual(expected)
  })

  it.each([
    ['has a hole', [bid(1), bid(3)], ['redis missing 3']],
    ['accepts what is not higher', [bid(1), bid(2, 100)], ['redis not-higher 2']],
    ['goes on after the closing', [bid(1), bid(2), bid(3), closed, bid(5)], ['redis after-closing 5']],
    ['closes for another winner', [bid(1), { ...closed, seq: 2, winner: 'Bob' }], ['redis different 2']],
  ])('finds a record that %s', (_, record, expected) => {
    expect(kinds(record, record)).toEqual(expected)
  })
})
