import { expect, it } from 'vitest'
import { parseHostAndPort, parseMeshAddress } from './mesh-address.js'

it.each([
  ['10.0.0.1:7000', { host: '10.0.0.1', port: 7000 }],
  ['node-1.example.com', { host: 'node-1.example.com', port: 7400 }],
  ['[::1]:0', { host: '::1', port: 0 }],
  ['[fe80::1]', { host: 'fe80::1', port: 7400 }],
])('reads %s', (text, expected) => {
  expect(parseHostAndPort(text)).toEqual(expected)
})

it.each(['', ':7000', 'a:', 'a:b', 'a:65536', 'a:-1', '::1', '[::1', 'a b:1', 'user@host:1', 'a/b'])(
  'takes %j for no place',
  (text) => {
    expect(parseHostAndPort(text)).toBeUndefined()
  },
)

it('reads a list of places, and one name', () => {
  const places = [
    { host: 'a', port: 1 },
    { host: '::1', port: 2 },
    { host: 'c', port: 7400 },
  ]
  expect(parseMeshAddress('mesh://a:1,[::1]:2,c')).toEqual(places)
  expect(parseMeshAddress('mesh://webmq.internal:7000/')).toEqual([{ host: 'webmq.internal', port: 7000 }])
})

it.each(['mesh://', 'mesh://a:0', 'mesh://a,,b', 'mesh://a:1,', 'mesh://u:p@a:1', 'nats://a:1', 'mesh://a/b'])(
  'takes %j for no mesh',
  (address) => {
    expect(parseMeshAddress(address)).toBeUndefined()
  },
)
