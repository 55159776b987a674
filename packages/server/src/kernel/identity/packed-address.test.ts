import { expect, it } from 'vitest'
import { packAddress, unpackAddress } from './client-address.js'

it.each(['0.0.0.0', '127.0.0.1', '203.0.113.7', '255.255.255.255'])('packs %s as an integer', (address) => {
  const packed = packAddress(address)
  expect(typeof packed).toBe('number')
  // More would be an object of its own.
  expect(packed).toBe(Number(packed) | 0)
  expect(unpackAddress(packed)).toBe(address)
})

it('makes an IPv4 address of one that arrived on an IPv6 socket', () => {
  expect(unpackAddress(packAddress('::ffff:203.0.113.7'))).toBe('203.0.113.7')
})

it.each(['2001:db8::1', '::1', '', '256.1.1.1', '01.1.1.1', '/run/webmq.sock'])('keeps %j as text', (address) => {
  expect(packAddress(address)).toBe(address)
  expect(unpackAddress(packAddress(address))).toBe(address)
})
