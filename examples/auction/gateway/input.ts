import { randomUUID } from 'node:crypto'
import { MAX_AMOUNT, MAX_BIDDER_LENGTH, MAX_LENGTH_MS, MAX_LISTED_BIDS, MIN_LENGTH_MS } from './limits'
import { Refusal } from './refusal'

/** An item as `POST /items` names it. */
export interface ItemInput {
  readonly id: string
  readonly endsInMs: number
  readonly startPrice: number
}

/** A bid as `POST /items/:id/bids` names it. */
export interface BidInput {
  readonly bidId: string
  readonly bidder: string
  readonly amount: number
}

type Fields = Readonly<Record<string, unknown>>

const ITEM_ID = /^[A-Za-z0-9_-]{1,32}$/
const BID_ID = /^[A-Za-z0-9_-]{1,64}$/
/** No control characters, no line ends of Unicode, and no halves of surrogate pairs. */
const BIDDER = new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${MAX_BIDDER_LENGTH}}$`, 'u')

export function itemInput(body: unknown): ItemInput {
  const { id = randomUUID().slice(0, 8), endsInMs, startPrice } = fieldsOf(body)
  return {
    id: itemId(id),
    endsInMs: integer('endsInMs', endsInMs, MIN_LENGTH_MS, MAX_LENGTH_MS),
    startPrice: integer('startPrice', startPrice, 1, MAX_AMOUNT),
  }
}

export function bidInput(body: unknown): BidInput {
  const { bidId, bidder, amount } = fieldsOf(body)
  return {
    bidId: matching('bidId', bidId, BID_ID),
    bidder: matching('bidder', bidder, BIDDER),
    amount: integer('amount', amount, 1, MAX_AMOUNT),
  }
}

export function itemId(id: unknown): string {
  return matching('id', id, ITEM_ID)
}

/** The newest bids before `before`; without it, the newest. */
export function pageInput(query: URLSearchParams): { readonly before: number; readonly limit: number } {
  const number = (name: string, otherwise: number) => (query.has(name) ? Number(query.get(name)) : otherwise)
  return {
    before: integer('before', number('before', Number.MAX_SAFE_INTEGER), 1, Number.MAX_SAFE_INTEGER),
    limit: integer('limit', number('limit', MAX_LISTED_BIDS), 1, MAX_LISTED_BIDS),
  }
}

function fieldsOf(body: unknown): Fields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Refusal(400, 'no-object')
  return body as Fields
}

function matching(field: string, value: unknown, pattern: RegExp): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw new Refusal(400, 'invalid', { field })
  return value
}

function integer(field: string, value: unknown, min: number, max: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw new Refusal(400, 'invalid', { field, min, max })
  }
  return value as number
}
