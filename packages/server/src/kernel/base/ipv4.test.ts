import { isIPv4 } from 'node:net'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ipv4Of, ipv4Text } from './ipv4.js'

it('reads every IPv4 address, and writes it again', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(ipv4Text(ipv4Of(address) ?? -1)).toBe(address)
    }),
  )
})

it('takes what Node takes for an IPv4 address, and nothing else', () => {
  const part = fc.oneof(fc.nat({ max: 300 }).map(String), fc.constantFrom('', '0', '00', '01', 'a', '-1', ' 1', '1e1'))
  const almost = fc.array(part, { minLength: 3, maxLength: 5 }).map((parts) => parts.join('.'))
  fc.assert(
    fc.property(fc.oneof(almost, fc.string(), fc.ipV6()), (text) => {
      expect(ipv4Of(text) !== undefined).toBe(isIPv4(text))
    }),
    { numRuns: 2_000 },
  )
})
