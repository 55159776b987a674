import { useRef, useState } from 'react'
import { type Answer, placeBid } from './gateway'

/** This page's last bid on an item. */
export interface Bid {
  readonly state: 'none' | 'sending' | 'answered'
  readonly amount: number
  readonly answer?: Answer
}

/** This page's last bid, and a function that bids. */
export function useBid(item: string, me: string): Bid & { readonly place: (amount: number) => void } {
  const [bid, setBid] = useState<Bid>({ state: 'none', amount: 0 })
  const count = useRef(0)
  async function place(amount: number) {
    const own = ++count.current
    setBid({ state: 'sending', amount })
    const answer = await placeBid(item, me, amount)
    // The answer to an earlier bid may come later.
    if (own === count.current) setBid({ state: 'answered', amount, answer })
  }
  return { ...bid, place }
}
