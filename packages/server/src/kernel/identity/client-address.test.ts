import { describe, expect, it } from 'vitest'
import { countedAddress, unmapped } from './client-address.js'

describe('countedAddress', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
    ['::2', '0:0:0:0::/64'],
    ['172.32.0.1', '172.32.0.1'],
    ['100.128.0.1', '100.128.0.1'],
  ])('counts %s as %s', (address, counted) => {
    expect(countedAddress(address)).toBe(counted)
  })

  it.each([
    '127.0.0.1',
    '127.9.9.9',
    '::ffff:127.0.0.1',
    '::1',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.1.1',
    'fc00::1',
    'fdff::1',
    'fe80::1',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    '',
    'localhost',
    '/run/webmq.sock',
  ])('does not count %j', (address) => {
    expect(countedAddress(address)).toBeUndefined()
  })
})

it('an IPv4 address on an IPv6 socket is an IPv4 address', () => {
  expect(unmapped('::ffff:127.0.0.1')).toBe('127.0.0.1')
  expect(unmapped('::ffff:7f00:1')).toBe('::ffff:7f00:1')
  expect(unmapped('::1')).toBe('::1')
})
