import { expect, it } from 'vitest'
import { Networks, networkDefect } from './networks.js'

it.each([
  ['10.0.0.0/8', '10.255.0.1', '11.0.0.1'],
  ['10.0.0.0/8', '::ffff:10.1.2.3', '::10.1.2.3'],
  ['192.0.2.7', '192.0.2.7', '192.0.2.6'],
  ['0.0.0.0/0', '203.0.113.7', '2001:db8::1'],
  ['2001:db8::/32', '2001:db8:1::2', '2001:db9::2'],
  ['::1', '::1', '::2'],
  ['loopback', '127.9.9.9', '128.0.0.1'],
  ['private', '172.31.255.255', '172.32.0.1'],
  ['private', 'fe80::1%eth0', '2001:db8::1'],
])('%s contains %s and not %s', (range, inside, outside) => {
  expect(networkDefect(range)).toBeUndefined()
  const networks = new Networks([range])
  expect([networks.contains(inside), networks.contains(outside)]).toEqual([true, false])
})

it('no range contains nothing, and no range contains what is no address', () => {
  expect(new Networks([]).contains('127.0.0.1')).toBe(false)
  for (const text of ['', 'here', '/run/webmq.sock'])
    expect(new Networks(['0.0.0.0/0', '::/0']).contains(text)).toBe(false)
})

it.each(['', 'localhost', '10.0.0.0/33', '::/129', '10.0.0/8', '10.0.0.0/', '10.0.0.0/-1', 'toString'])(
  '%j is no range',
  (text) => {
    expect(networkDefect(text)).toContain('an address, a range')
  },
)
