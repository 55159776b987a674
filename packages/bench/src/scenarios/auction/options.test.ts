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
    expect(auctionMode(configOf('--balancer', '--tiers', '100'))).toBe('one item, balanced')
  })

  it('gives every node the same budget, or each number of nodes its own', () => {
    expect(configOf().nodeCpus).toEqual([])
    expect(configOf('--node-cpus', '0.5').nodeCpus).toEqual([0.5, 0.5, 0.5])
    expect(configOf('--nodes', '2,4', '--node-cpus', '1,0.5').nodeCpus).toEqual([1, 0.5])
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
    [['--nodes', '2,4', '--node-cpus', '1,1,1'], /one for each of --nodes/],
    [['--items', '1001'], /at most 1000/],
    [['--zipf', '1'], /--items/],
    [['--shard'], /--items/],
    [['--items', '2', '--shard', '--balancer', '--tiers', '9'], /--balancer/],
    [['--balancer', '--tls', '--tiers', '9'], /no TLS/],
    [['--balancer'], /9900 connections/],
  ])('is refused when it cannot be: %j', (flags, message) => {
    expect(() => configOf(...flags)).toThrow(message)
  })
})
