import { describe, expect, it } from 'vitest'
import { decodePayload, MIN_MESSAGE_SIZE_BYTES, type PayloadBounds, PayloadEncoder } from './payload.js'

const publication = { client: 42, turn: 7, key: 3, keySequence: 2, atUs: 1_234_567.8 }
const bounds: PayloadBounds = { clientCount: 100, maxTurnCount: 50, sizeBytes: 200 }
const encoder = new PayloadEncoder(200, 1)

describe('payloads', () => {
  it.each([MIN_MESSAGE_SIZE_BYTES, 100, 1_024, 65_536])('are exactly %d bytes of JSON', (sizeBytes) => {
    const encoder = new PayloadEncoder(sizeBytes, 1)
    const widest = { client: 9_999_999, turn: -99_999_999, key: 0, keySequence: 99_999_999, atUs: -999_999_999_999 }
    for (const each of [publication, widest]) {
      expect(Buffer.byteLength(JSON.stringify(encoder.encode(each)))).toBe(sizeBytes)
    }
  })

  it('carry publisher, number and intended time in whole microseconds', () => {
    const decoded = decodePayload(JSON.parse(JSON.stringify(encoder.encode(publication))), bounds)
    expect(decoded).toMatchObject({ p: 42, n: 7, q: 2, t: 1_234_568 })
  })

  it.each([0, -1, 9, 10, -10, 99_999, 100_000])(
    'are recognised at their exact size, whatever the width of the time %d',
    (atUs) => {
      const payload = encoder.encode({ ...publication, atUs })
      expect(decodePayload(payload, bounds)).toEqual(payload)
      expect(decodePayload({ ...payload, pad: `${payload.pad}x` }, bounds)).toBeUndefined()
    },
  )

  it.each([
    ['is no object', 'text'],
    ['is null', null],
    ['lacks a field', { p: 1, n: 1, q: 0, pad: '' }],
    ['was cut', { ...encoder.encode(publication), pad: 'short' }],
    ['names a client that does not exist', { ...encoder.encode(publication), p: 100 }],
    ['names a turn after the last', { ...encoder.encode(publication), n: 50 }],
    ['has more messages of a key than of the publisher', { ...encoder.encode(publication), q: 8 }],
    ['has a time that is no number', { ...encoder.encode(publication), t: 'soon' }],
  ])('are refused when one %s', (_, value) => {
    expect(decodePayload(value, bounds)).toBeUndefined()
  })
})
