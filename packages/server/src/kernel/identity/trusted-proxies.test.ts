import { expect, it } from 'vitest'
import { TrustedProxies } from './trusted-proxies.js'

const PEER = '10.0.0.1'

function clientOf(forwardedFor: string | undefined, peer = PEER, networks = ['10.0.0.0/8', 'fd00::/8']) {
  const proxies = new TrustedProxies(networks)
  const address = proxies.clientAddress(peer, (name) => (name === 'x-forwarded-for' ? forwardedFor : undefined))
  return { address, malformedCount: proxies.malformedCount }
}

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['  203.0.113.7 ', '203.0.113.7'],
  ['203.0.113.7:1234', '203.0.113.7'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]:1234', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['203.0.113.7, 10.0.0.2,10.0.0.3', '203.0.113.7'],
  ['203.0.113.7,fd00::2', '203.0.113.7'],
  // What the client itself sent is on the left, and is not looked at.
  ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
  ['127.0.0.1, 203.0.113.7', '203.0.113.7'],
  [`garbage, ,, 203.0.113.7, 10.0.0.2`, '203.0.113.7'],
  [`${'x'.repeat(100_000)}, 203.0.113.7`, '203.0.113.7'],
  // A client within the trusted networks.
  ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
])('behind a trusted proxy, %.40j is %s', (header, address) => {
  expect(clientOf(header)).toEqual({ address, malformedCount: 0 })
})

it('believes nobody else', () => {
  for (const peer of ['203.0.113.9', '127.0.0.1', '::1', '', '/run/webmq.sock']) {
    expect(clientOf('198.51.100.1', peer).address).toBe(peer)
  }
  expect(clientOf('198.51.100.1', PEER, []).address).toBe(PEER)
})

it('takes the address of the peer without a header', () => {
  expect(clientOf(undefined)).toEqual({ address: PEER, malformedCount: 0 })
})

it.each([
  '',
  ' ',
  'unknown',
  '203.0.113.7,',
  '203.0.113.256',
  '01.2.3.4',
  'fe80::1%eth0',
  '[fe80::1%eth0]',
  '[203.0.113.7]',
  '[2001:db8::1',
  '2001:db8::1]:1',
  '203.0.113.7:port',
  '203.0.113.7, unknown, 10.0.0.2',
  `203.0.113.7, ${'10.0.0.2, '.repeat(32)}10.0.0.3`,
  'x'.repeat(100_000),
])('ignores and counts %.40j', (header) => {
  expect(clientOf(header)).toEqual({ address: PEER, malformedCount: 1 })
})
