import { describe, expect, it } from 'vitest'
import { decodeClientMessage } from 'webmq-client/protocol'
import { decodingUnits, handlingUnits, matchingUnits } from './costs.js'

/** Units of decoding and handling. */
function unitsOf(text: string): number {
  const data = Buffer.from(text)
  const message = decodeClientMessage(data, false)
  return decodingUnits(message, data.length) + handlingUnits(message)
}

describe('the work of a message', () => {
  it('grows with the header that has to be read', () => {
    const options = Array.from({ length: 180 }, (_, place) => `o${place}=vvvvv`).join(' ')
    expect(unitsOf(`unlisten u a.b ${options}`) - unitsOf('unlisten u a.b')).toBeGreaterThan(40)
    expect(unitsOf(`publish - a.b ${options}\n{}`) - unitsOf('publish - a.b\n{}')).toBeGreaterThan(40)
  })

  it('does not grow with the payload of a publish', () => {
    expect(unitsOf(`publish - a.b\n${'x'.repeat(60_000)}`)).toBe(unitsOf('publish - a.b\n{}'))
  })

  it('counts the hash of a message id', () => {
    expect(unitsOf('publish - a.b id=i\n{}')).toBeGreaterThan(unitsOf('publish - a.b\n{}'))
  })

  it('counts a key only when it has to be matched', () => {
    expect(matchingUnits(0)).toBe(0)
    expect(matchingUnits(1_000)).toBeGreaterThan(10)
  })
})
