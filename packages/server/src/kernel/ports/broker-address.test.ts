import { describe, expect, it } from 'vitest'
import { brokerNameOf, secretHider, withoutPasswords } from './broker-address.js'

describe('withoutPasswords', () => {
  it.each([
    ['memory', 'memory'],
    ['amqp://localhost', 'amqp://localhost'],
    ['amqp://user:pass@host', 'amqp://user:***@host'],
    ['amqps://user:pass@host:5671/vhost?heartbeat=5', 'amqps://user:***@host:5671/vhost?heartbeat=5'],
    ['redis://:pass@host:6379/2', 'redis://:***@host:6379/2'],
    ['redis://host:6379/0', 'redis://host:6379/0'],
    ['redis://user:@host', 'redis://user:***@host'],
    ['redis://default:p%40s%2Fs@host', 'redis://default:***@host'],
    ['redis://h1:1,h2:2,h3:3', 'redis://h1:1,h2:2,h3:3'],
    ['nats://u:pass@h1:4222,h2:4222', 'nats://u:***@h1:4222,h2:4222'],
    ['nats://u:pass@h1,v:word@h2', 'nats://u:***@h1,v:***@h2'],
    ['nats://u:pass@h1:1,nats://v:word@h2:2', 'nats://u:***@h1:1,v:***@h2:2'],
    ['nats://sesame@host', 'nats://***@host'],
    ['mesh://:secret@10.0.0.1:7000,10.0.0.2:7000', 'mesh://:***@10.0.0.1:7000,10.0.0.2:7000'],
    ['amqp://user:pass@[::1]:5672/', 'amqp://user:***@[::1]:5672/'],
    [
      'redis+sentinel://u:pass@h1,h2/name?sentinelPassword=sesame',
      'redis+sentinel://u:***@h1,h2/name?sentinelPassword=***',
    ],
    ['redis://host?password=sesame&db=1', 'redis://host?password=***&db=1'],
    ['mesh://h1,h2?secret=sesame', 'mesh://h1,h2?secret=***'],
    // Not encoded as they should be: hidden all the same.
    ['amqp://user:pa/ss@host/vhost', 'amqp://***@host/vhost'],
    ['amqp://user:p@ss@host', 'amqp://***@host'],
    ['amqp://user:p:ss@host', 'amqp://***@host'],
    ['amqp://user:p#ss@host', 'amqp://***@host'],
    ['amqp://user:p?ss@host', 'amqp://***@host'],
    ['redis://:pa ss@host', 'redis://***@host'],
    ['amqp://user:pa,ss@host', 'amqp://***@host'],
    ['ampq://user:pass@host', 'ampq://user:***@host'],
    ['user:pass@host', 'user:***@host'],
    ['amqp:/user:pass@host', '***@host'],
  ])('%s is shown as %s', (address, shown) => {
    expect(withoutPasswords(address)).toBe(shown)
  })
})

describe('secretHider', () => {
  it('takes the address, its passwords as written and as meant, and tokens out of a text', () => {
    const hide = secretHider('amqp://user:p%40ss@host/vhost')
    expect(hide('connect amqp://user:p%40ss@host/vhost failed')).toBe('connect amqp://user:***@host/vhost failed')
    expect(hide('p%40ss and p@ss are wrong for user at host')).toBe('*** and *** are wrong for user at host')
    expect(secretHider('nats://sesame@host')("token 'sesame' refused by host")).toBe("token '***' refused by host")
    expect(secretHider('nats://u:open@h1,v:opener@h2')('open opener')).toBe('*** ***')
    expect(secretHider('mesh://h1?secret=sesame&x=1')('sesame 1')).toBe('*** 1')
    expect(secretHider('redis://:%zz9@host')('%zz9')).toBe('***')
    expect(secretHider('amqp://user:p@ss:w0rd@host')('ss:w0rd')).not.toContain('w0rd')
  })

  it('leaves texts alone when there is no secret, or one that hides nothing', () => {
    expect(secretHider('memory')('memory is full')).toBe('memory is full')
    expect(secretHider('redis://host')('a redis at host')).toBe('a redis at host')
    expect(secretHider('redis://:a@host')('a redis at host')).toBe('a redis at host')
  })
})

describe('brokerNameOf', () => {
  it.each([
    ['memory', 'memory'],
    ['amqps://h', 'rabbitmq'],
    ['rediss://h', 'redis'],
    ['redis+sentinel://h,h:1/name', 'redis'],
    ['rediss+cluster://h1,h2', 'redis'],
    ['redis+other://h', undefined],
    ['tls://h', 'nats'],
    ['mesh://h:1,h:2', 'mesh'],
    ['http://h', undefined],
    ['amqp://', undefined],
    ['rabbitmq', undefined],
  ])('%s is of %s', (address, name) => {
    expect(brokerNameOf(address)).toBe(name)
  })
})
