/** Bytes of a request body. */
export const MAX_BODY_BYTES = 4_096
/** Requests that a gateway handles at once; further ones are answered with 503. */
export const MAX_REQUESTS = 1_000
export const MAX_CONNECTIONS = 10_000
/** A request whose head and body take longer is ended. */
export const REQUEST_TIMEOUT_MS = 10_000

/** Items that are open at once, over all gateways. */
export const MAX_OPEN_ITEMS = 1_000
export const MAX_BIDS_PER_ITEM = 100_000
/** Events that wait to be published; until there are fewer, bids are answered with 503. */
export const MAX_WAITING_EVENTS = 10_000
export const MIN_LENGTH_MS = 100
export const MAX_LENGTH_MS = 30 * 24 * 3_600_000
/** Cents. Lua counts in doubles, which are exact up to 2 ** 53. */
export const MAX_AMOUNT = 1_000_000_000_000
export const MAX_BIDDER_LENGTH = 32
/** Bids that one answer lists. */
export const MAX_LISTED_BIDS = 100

/** Time that a closed item can still be read. */
export const KEEP_CLOSED_MS = 24 * 3_600_000
