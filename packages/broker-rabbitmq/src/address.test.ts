import { describe, expect, it } from 'vitest'
import { parseAddress } from './address.js'

describe('an address of RabbitMQ', () => {
  it('needs no more than a host', () => {
    expect(parseAddress('amqp://rabbit')).toEqual({
      hosts: [{ hostname: 'rabbit', port: 5672, username: 'guest', password: 'guest' }],
      vhost: '/',
      tls: undefined,
      text: 'amqp://rabbit:5672',
    })
  })

  it('has a user, a password and a virtual host, percent-encoded, and a text without the first two', () => {
    const address = parseAddress('amqp://a%40b:p%2Fw%3Ad%2C@rabbit:5673/%2Fvhost%20x')
    expect(address.hosts).toEqual([{ hostname: 'rabbit', port: 5673, username: 'a@b', password: 'p/w:d,' }])
    expect(address).toMatchObject({ vhost: '/vhost x', text: 'amqp://rabbit:5673/%2Fvhost%20x' })
  })

  it('has several hosts, which share the first user unless they have their own', () => {
    const { hosts, text } = parseAddress('amqp://u:p@one,two:1,v:q@[::1]:2,w@four/x')
    expect(hosts.map(({ hostname, port, username, password }) => [hostname, port, username, password])).toEqual([
      ['one', 5672, 'u', 'p'],
      ['two', 1, 'u', 'p'],
      ['::1', 2, 'v', 'q'],
      ['four', 5672, 'w', ''],
    ])
    expect(text).toBe('amqp://one:5672,two:1,[::1]:2,four:5672/x')
  })

  it('says with amqps what certificates to use', () => {
    const query = 'cacertfile=/ca%20files/ca.pem&certfile=c.pem&keyfile=k.pem&server_name_indication=rabbit.internal'
    expect(parseAddress(`amqps://rabbit?${query}`)).toMatchObject({
      hosts: [{ port: 5671 }],
      tls: {
        files: { ca: '/ca files/ca.pem', cert: 'c.pem', key: 'k.pem' },
        servername: 'rabbit.internal',
        isVerified: true,
      },
    })
    expect(parseAddress('amqps://rabbit/?verify=verify_none').tls?.isVerified).toBe(false)
  })

  it.each([
    'amqp://',
    'http://rabbit',
    'amqp://u:secret@',
    'amqp://u:secret@a@b',
    'amqp://u:sec/ret@rabbit',
    'amqp://u:secret%@rabbit',
    'amqp://u:secret@rabbit:0',
    'amqp://u:secret@rabbit:65536',
    'amqp://u:secret@rabbit,',
    'amqp://u:secret@rabbit/a/b',
    'amqp://u:secret@rabbit?heartbeat=1',
    'amqps://u:secret@rabbit?heartbeat=1',
    'amqps://u:secret@rabbit?verify=maybe',
  ])('is refused when it is none, and repeated in no error: %s', (address) => {
    let error: unknown
    try {
      parseAddress(address)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'E_OPTION_INVALID' })
    expect(String(error)).not.toContain('sec')
  })
})
