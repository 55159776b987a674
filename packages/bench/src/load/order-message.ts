const SMALL_ORDER = { t: 'order' }
const ORDER = {
  ...SMALL_ORDER,
  p: { id: 9_007_199_254, symbol: 'ESZ6', side: 'buy', type: 'limit', price: 5_234.75, quantity: 2, account: 'A-1042' },
  ts_us: 1_772_236_800_000_000,
}
/** `,"note":""` */
const NOTE_OVERHEAD_BYTES = 10

/** The smallest order there is. */
export const MIN_ORDER_BYTES = sizeOf(SMALL_ORDER)

/**
 * A trading order as clients send it, with JSON of exactly this size; small sizes have fewer members.
 * @throws {RangeError} below {@link MIN_ORDER_BYTES}.
 */
export function orderMessage(jsonBytes: number): object {
  if (jsonBytes < MIN_ORDER_BYTES)
    throw new RangeError(`an order has at least ${MIN_ORDER_BYTES} bytes, not ${jsonBytes}`)
  const order = jsonBytes < sizeOf(ORDER) ? SMALL_ORDER : ORDER
  return { ...order, note: 'x'.repeat(jsonBytes - sizeOf(order)) }
}

function sizeOf(order: object): number {
  return JSON.stringify(order).length + NOTE_OVERHEAD_BYTES
}
