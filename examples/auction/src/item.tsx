import type { Message } from 'webmq-client'
import { useMessages } from 'webmq-client/react'
import { BidForm } from './bid-form'
import { Course } from './course'
import type { AuctionEvent, ItemOpened } from './events'
import { eventsBefore } from './gateway'
import { nameOf } from './lots'
import { euros } from './money'
import { Outcome } from './outcome'
import { TimeLeft } from './time-left'
import { useBid } from './use-bid'

const LIMIT = 10

/** One item: its price, its bids, and a form for the next one. */
export function Item({ item: { id, startPrice, endsUs }, me }: { readonly item: ItemOpened; readonly me: string }) {
  const key = `auction.${id}.bid` as const
  const { messages, isStale, hasOlder, loadOlder } = useMessages(key, {
    limit: LIMIT,
    // Redis has all of them, the log of WebMQ the last ones.
    async loadOlder(oldest: Message<AuctionEvent> | undefined, limit: number) {
      const events = await eventsBefore(id, oldest?.payload.seq ?? 1, limit)
      return events.map((payload) => ({ key, payload, replayed: true }))
    },
  })
  const events = messages.map(({ payload }) => payload)
  const last = events.at(-1)
  const bids = events.filter((event) => event.type === 'bid')
  const bid = useBid(id, me)
  const price = bids.at(-1)?.amount ?? startPrice
  return (
    <article id={id} className={isStale ? 'card stale' : 'card'}>
      <h2>{nameOf(id)}</h2>
      <div className="standing">
        <span className="price">{euros(price)}</span>
        {last?.type === 'closed' ? <p className="left">Closed</p> : <TimeLeft endsUs={endsUs} />}
      </div>
      <Course amounts={[startPrice, ...bids.map(({ amount }) => amount)]} />
      <Outcome last={last} bid={bid} me={me} />
      {last?.type !== 'closed' && <BidForm minimum={(bids.at(-1)?.amount ?? startPrice - 1) + 1} place={bid.place} />}
      <ol className="bids" aria-label="Bids">
        {bids.map(({ seq, ts_us, bidder, amount }) => (
          <li key={seq}>
            {euros(amount)} by {bidder} <time>{new Date(ts_us / 1_000).toLocaleTimeString()}</time>
          </li>
        ))}
        {bid.state === 'sending' && <li className="pending">{euros(bid.amount)} by you</li>}
      </ol>
      {hasOlder && (
        <button type="button" onClick={loadOlder}>
          Older
        </button>
      )}
    </article>
  )
}
