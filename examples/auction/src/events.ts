/** A bid that was accepted. */
export interface BidEvent {
  readonly type: 'bid'
  readonly item: string
  /** Counts the events of an item from 1, without holes. */
  readonly seq: number
  /** Unix microseconds of Redis, which decided. */
  readonly ts_us: number
  /** Cents. */
  readonly amount: number
  readonly bidder: string
  readonly bidId: string
}

/** The last event of an item. */
export interface ClosedEvent {
  readonly type: 'closed'
  readonly item: string
  readonly seq: number
  readonly ts_us: number
  /** Absent when nobody has bid. */
  readonly winner?: string
  readonly amount?: number
}

export type AuctionEvent = BidEvent | ClosedEvent

/** An item when it opens. */
export interface ItemOpened {
  readonly id: string
  readonly startPrice: number
  /** Unix microseconds of Redis from which no bid is accepted. */
  readonly endsUs: number
}
