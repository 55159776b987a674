import { BlockList } from 'node:net'
import fc from 'fast-check'
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

it('answers for every IPv4 address as a BlockList of Node does', () => {
  const prefix = fc.nat({ max: 32 })
  const v6 = fc.constantFrom('::1/128', '::/0', 'fc00::/7', '::ffff:10.0.0.0/104', '::ffff:0:0/96', '0::ffff:a00:0/104')
  const range = fc.oneof(
    fc.tuple(fc.ipV4(), prefix).map(([address, bits]) => `${address}/${bits}`),
    v6,
  )
  fc.assert(
    fc.property(fc.array(range, { maxLength: 3 }), fc.ipV4(), (ranges, address) => {
      const list = new BlockList()
      for (const text of ranges) {
        const [net = '', bits] = text.split('/')
        list.addSubnet(net, Number(bits), net.includes(':') ? 'ipv6' : 'ipv4')
      }
      expect(new Networks(ranges).contains(address)).toBe(list.check(address))
    }),
    { numRuns: 1_000 },
  )
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
