import { describe, expect, it } from 'vitest'
import { parseNatsAddress } from './address.js'

describe('parseNatsAddress', () => {
  it('reads hosts and ports', () => {
    expect(parseNatsAddress('nats://a,b:1,[::1]:2,[::2]')).toEqual({
      hosts: [
        { name: 'a', port: 4222 },
        { name: 'b', port: 1 },
        { name: '::1', port: 2 },
        { name: '::2', port: 4222 },
      ],
      needsTls: false,
      identity: { kind: 'nobody' },
      tlsFiles: {},
      text: 'nats://a:4222,b:1,[::1]:2,[::2]:4222',
    })
  })

  it.each([
    ['nats://joe:s%40cret@a', { kind: 'user', user: 'joe', password: 's@cret' }],
    ['nats://joe:a:b@a,b', { kind: 'user', user: 'joe', password: 'a:b' }],
    ['nats://t0k%2Fen@a:1/', { kind: 'token', token: 't0k/en' }],
    ['nats://joe:s@a,nats://joe:s@b', { kind: 'user', user: 'joe', password: 's' }],
    ['tls://a?creds=/run/a.creds', { kind: 'creds', file: '/run/a.creds' }],
    ['nats://a,b?nkey=seed.nk', { kind: 'nkey', file: 'seed.nk' }],
  ])('reads who in %s', (address, identity) => {
    expect(parseNatsAddress(address).identity).toEqual(identity)
  })

  it('keeps credentials out of what is shown', () => {
    expect(parseNatsAddress('tls://joe:secret@a,b:1?ca=/ca.pem').text).toBe('tls://a:4222,b:1')
    expect(parseNatsAddress('nats://token@a').text).toBe('nats://a:4222')
  })

  it('wants TLS with tls:// and with certificates', () => {
    expect(parseNatsAddress('tls://a').needsTls).toBe(true)
    expect(parseNatsAddress('nats://a?ca=c.pem').needsTls).toBe(true)
    expect(parseNatsAddress('nats://a?cert=c.pem&key=k.pem').tlsFiles).toEqual({ cert: 'c.pem', key: 'k.pem' })
  })

  it.each([
    'nats://',
    'nats://a/b',
    'nats://a:99999',
    'nats://sec,ret@a',
    'nats://joe:secret@a,max:secret@b',
    'nats://joe:sec%ret@a',
    'nats://joe:secret@a?creds=secret',
    'nats://a?cert=secret',
    'nats://a?secret=1',
    'http://secret@a',
  ])('refuses %s, without showing it', (address) => {
    expect(() => parseNatsAddress(address)).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
    expect(() => parseNatsAddress(address)).not.toThrow(/secret|sec,ret|sec%ret/)
  })
})
