import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { addAuctionOptions, describeAuction, readAuctionConfig } from './options.js'
import { auctionMode, auctionTarget } from './result.js'

function configOf(...flags: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  addAuctionOptions(command)
  return readAuctionConfig(command.parse(flags, { from: 'user' }).opts())
}

describe('the auction', () => {
  it('is that of the seed by default', () => {
    const config = configOf()
    expect(config).toMatchObject({ nodes: [1, 2, 4], bids: 10, intervalMs: 5_000, items: 1, zipf: 0 })
    expect(config.tiers).toEqual([100, 1_000, 3_500, 4_500, 10_000])
    expect([auctionTarget(config), auctionMode(config)]).toEqual(['webmq-native+nats', 'one item'])
  })

  it.each([
    ['500ms', 500],
    ['5s', 5_000],
    ['0.25s', 250],
  ])('has an interval of %s', (text, ms) => {
    expect(configOf('--interval', text).intervalMs).toBe(ms)
  })

  it('names what differs', () => {
    const flags = ['--items', '100', '--zipf', '1.1', '--shard', '--compression', '--tls', '--broker', 'redis']
    const config = configOf(...flags)
    expect(auctionMode(config)).toBe('100 items, zipf 1.1, sharded, compressed, tls')
    expect(auctionTarget(config)).toBe('webmq-native+redis')
    expect(auctionMode(configOf('--migrate', '--tls'))).toBe('one item, tls, migrating')
    expect(auctionMode(configOf('--balancer', '--tiers', '100'))).toBe('one item, balanced')
  })

  it('has fewer clients when they are real', () => {
    expect(configOf('--migrate')).toMatchObject({ tiers: [100, 1_000], nodes: [2] })
    expect(configOf('--migrate', '--tiers', '9', '--nodes', '3')).toMatchObject({ tiers: [9], nodes: [3] })
  })

  it('hides the password of a given broker', () => {
    const described = describeAuction(configOf('--broker', 'nats://me:secret@host'))
    expect(described).toMatchObject({ broker: 'nats', brokerAddress: 'nats://***@host' })
  })

  it.each([
    [['--interval', '5'], /1ms|above|number/],
    [['--interval', '0ms'], /at least 1ms/],
    [['--warmup', '1.5'], /whole number/],
    [['--broker', 'mesh'], /nats, redis, rabbitmq/],
    [['--broker', 'memory'], /nats, redis, rabbitmq/],
    [['--items', '1001'], /at most 1000/],
    [['--zipf', '1'], /--items/],
    [['--shard'], /--items/],
    [['--items', '2', '--shard', '--balancer', '--tiers', '9'], /--balancer/],
    [['--balancer', '--tls', '--tiers', '9'], /no TLS/],
    [['--balancer'], /9900 connections/],
    [['--migrate', '--nodes', '1,2'], /--nodes 2 or more/],
    [['--migrate', '--items', '2', '--shard'], /--shard/],
    [['--migrate', '--balancer', '--tiers', '9'], /--balancer/],
    [['--migrate', '--compression'], /--compression/],
  ])('is refused when it cannot be: %j', (flags, message) => {
    expect(() => configOf(...flags)).toThrow(message)
  })
})
