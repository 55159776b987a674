import { expect, it } from 'vitest'
import { MIN_ORDER_BYTES, orderMessage } from './order-message.js'

it.each([MIN_ORDER_BYTES, 64, 161, 162, 175, 65_536])('an order of %d bytes has that size as JSON', (bytes) => {
  expect(JSON.stringify(orderMessage(bytes))).toHaveLength(bytes)
})

it('an order that is too small is refused', () => {
  expect(() => orderMessage(MIN_ORDER_BYTES - 1)).toThrow(RangeError)
})
