import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { addHistoryOptions, carrierOf, iterationSeconds, readHistoryConfig, stagesOf } from './options.js'

/** The settings that flags amount to. */
function configOf(...flags: string[]) {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  addHistoryOptions(command)
  return readHistoryConfig(command.parse(flags, { from: 'user' }).opts())
}

describe('the load of the history scenario', () => {
  it('is that of the seed by default', () => {
    const config = configOf()
    expect(config).toMatchObject({ users: 1_500, rounds: 20, channels: 5, sendersRatio: 0.3, sendingRate: 0.3 })
    expect(config.cases).toEqual([{ broker: 'memory', backends: 1 }])
    const { startUsers, stages, fullFromMs, fullMs } = stagesOf(config)
    expect([startUsers, ...stages.map(({ users }) => users)]).toEqual([100, 300, 500, 1_000, 1_300, 1_500, 1_500, 0])
    expect(stages.map(({ durationMs }) => durationMs / 1_000)).toEqual([10, 10, 10, 10, 10, 30, 30])
    expect([fullFromMs, fullMs]).toEqual([50_000, 30_000])
    expect(iterationSeconds(config)).toBeCloseTo(42.1, 1)
  })

  it('keeps its shape when it is scaled', () => {
    const { startUsers, stages, fullFromMs, fullMs } = stagesOf(configOf('--users', '150', '--duration', '11'))
    expect([startUsers, ...stages.map(({ users }) => users)]).toEqual([10, 30, 50, 100, 130, 150, 150, 0])
    expect(stages.map(({ durationMs }) => durationMs)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000, 3_000, 3_000])
    expect([fullFromMs, fullMs]).toEqual([5_000, 3_000])
  })

  it('takes single settings before those of the preset', () => {
    expect(configOf('--preset', 'minute', '--users', '9')).toMatchObject({ users: 9, duration: 44, rounds: 4 })
  })
})

describe('the servers of the history scenario', () => {
  it('are all that can be, on one node and on three, when asked for', () => {
    const names = configOf('--all').cases.map(({ broker, backends }) => `${broker}${backends}`)
    const one = ['none1', 'memory1', 'redis1', 'nats1', 'rabbitmq1']
    expect(names).toEqual([...one, 'none3', 'redis3', 'nats3', 'rabbitmq3', 'mesh3'])
  })

  it('are those of a list', () => {
    const cases = [
      { broker: 'memory', backends: 1 },
      { broker: 'mesh', backends: 2 },
    ]
    expect(configOf('--cases', 'memory1, mesh2').cases).toEqual(cases)
  })

  it.each([
    [['--broker', 'memory', '--backends', '3'], /embedded in each backend/],
    [['--broker', 'mesh'], /--backends 2 or more/],
    [['--cases', 'kafka1'], /such as memory1,redis3/],
    [['--senders-ratio', '1.5'], /at most 1/],
  ])('are refused when they cannot be: %j', (flags, message) => {
    expect(() => configOf(...flags)).toThrow(message)
  })

  it('are connected by something also when nothing keeps a history', () => {
    expect(carrierOf({ broker: 'none', backends: 1 })).toBe('memory')
    expect(carrierOf({ broker: 'none', backends: 3 })).toBe('redis')
    expect(carrierOf({ broker: 'nats', backends: 3 })).toBe('nats')
  })
})
