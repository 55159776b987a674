import type { AuctionEvent, ItemOpened } from './events'

/** What goes over the wire. The hooks take the types of keys and payloads from here. */
declare module 'webmq-client' {
  interface Topics {
    'auction.*.bid': AuctionEvent
    'auction.items': ItemOpened
  }
}
