import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutboundMessage } from '../../../kernel/ports/broker.js'
import { bundleEnd, decodeBundle, encodeBundle } from './bundle.js'

const messages = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'a', 'a', 'b'),
    payload: fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc.constantFrom(4_096, 4_097).map((size) => new Uint8Array(size)),
    ),
    isBinary: fc.boolean(),
    messageId: fc.option(fc.constant('id'), { nil: undefined, freq: 10 }),
  }),
  { maxLength: 40 },
) as fc.Arbitrary<OutboundMessage[]>

describe('bundles', () => {
  it('give back every message of a run, and runs leave none out', () => {
    fc.assert(
      fc.property(messages, (batch) => {
        let from = 0
        while (from < batch.length) {
          const to = bundleEnd(batch, from)
          const run = batch.slice(from, to)
          const bytes = encodeBundle(batch, from, to)
          expect(bytes.length).toBeLessThanOrEqual(16_384)
          expect(decodeBundle('a', bytes)).toEqual(
            run.map(({ payload, isBinary }) => ({ key: 'a', payload: Buffer.from(payload), isBinary })),
          )
          expect(new Set(run.map(({ key }) => key)).size).toBeLessThanOrEqual(1)
          expect(run.every(({ payload, messageId }) => payload.length <= 4_096 && messageId === undefined)).toBe(true)
          // One that goes by itself is none.
          from = Math.max(to, from + 1)
        }
      }),
    )
  })

  it('are found out when they are cut short', () => {
    const one: OutboundMessage = { key: 'a', payload: Uint8Array.of(1, 2, 3), isBinary: true }
    const bytes = encodeBundle([one, one], 0, 2)
    for (const length of [1, 2, 3, 5, 7, 8, 11]) expect(decodeBundle('a', bytes.subarray(0, length))).toBeUndefined()
    expect(decodeBundle('a', bytes.subarray(0, 6))).toHaveLength(1)
  })
})
