import { describe, expect, it } from 'vitest'
import { BROKER_KINDS, parseBroker, withoutSecrets } from './broker-choice.js'

describe('the broker of a run', () => {
  it.each(BROKER_KINDS)('is one of its own when it is named: %s', (kind) => {
    expect(parseBroker(kind)).toEqual({ kind })
  })

  it.each([
    ['amqp://guest:guest@localhost', 'rabbitmq'],
    ['amqps://host/vhost', 'rabbitmq'],
    ['redis://127.0.0.1:6379', 'redis'],
    ['rediss://a,b', 'redis'],
    ['nats://127.0.0.1:4222', 'nats'],
    ['tls://host', 'nats'],
  ])('is a given one when it is an address: %s', (address, kind) => {
    expect(parseBroker(address)).toEqual({ kind, address })
  })

  it.each(['', 'kafka', 'amqp://', 'http://host', 'mesh://a,b', 'constructor://x', 'Redis'])('is not %j', (text) => {
    expect(() => parseBroker(text)).toThrow(/Allowed are memory, rabbitmq, redis, nats, mesh/)
  })
})

describe('an address that is written down', () => {
  it.each([
    ['amqp://me:secret@host:5672/v', 'amqp://***@host:5672/v'],
    ['amqp://me:se/cr@et@host', 'amqp://***@host'],
    ['nats://a:one@h1:1,b:two@h2:2', 'nats://***@h2:2'],
    ['nats://token@host', 'nats://***@host'],
    ['redis://host:6379?password=secret', 'redis://host:6379?***'],
    ['redis://host:6379', 'redis://host:6379'],
    ['deliveriesPerSecond@1000,payloadBytes=64', 'deliveriesPerSecond@1000,payloadBytes=64'],
  ])('has no secret: %s', (text, written) => {
    expect(withoutSecrets(text)).toBe(written)
  })
})
