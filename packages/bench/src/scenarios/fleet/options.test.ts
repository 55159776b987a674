import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { addFleetOptions, readFleetConfig } from './options.js'

/** The settings that flags amount to. */
function configOf(...flags: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  addFleetOptions(command)
  return readFleetConfig(command.parse(flags, { from: 'user' }).opts())
}

describe('the settings of a fleet', () => {
  it('are three nodes, 300 users, Redis and every fault by default', () => {
    expect(configOf()).toMatchObject({ backends: 3, users: 300, rooms: 30, brokers: ['redis'] })
    expect(configOf().faults).toEqual(['rolling', 'kill', 'stop', 'broker', 'slow', 'cut'])
  })

  it('put every tenth user on an event stream, and take both balancers in turn', () => {
    expect(configOf()).toMatchObject({ balancers: ['haproxy'], eventStreams: 30 })
    const config = configOf('--balancer', 'nginx,haproxy', '--event-streams', '0')
    expect(config).toMatchObject({ balancers: ['nginx', 'haproxy'], eventStreams: 0 })
  })

  it('are lists of brokers and faults; faults keep the order of the table', () => {
    const config = configOf('--broker', 'rabbitmq, nats', '--faults', 'cut,kill,cut')
    expect(config).toMatchObject({ brokers: ['rabbitmq', 'nats'], faults: ['kill', 'cut'] })
  })

  it.each([
    [['--broker', 'mesh'], /redis, nats, rabbitmq/],
    [['--faults', 'kill,earthquake'], /rolling, kill, stop/],
    [['--faults', ''], /rolling, kill, stop/],
    [['--backends', '1'], /2 or more/],
    [['--users', '9900'], /at most 9,?900/],
    [['--users', '5', '--rooms', '6'], /at most --users/],
    [['--users', '5', '--event-streams', '6'], /at most --users/],
    [['--balancer', 'envoy'], /haproxy, nginx/],
    [['--down', '0'], /above 0/],
  ])('are refused when they cannot be: %j', (flags, message) => {
    expect(() => configOf(...flags)).toThrow(message)
  })
})
