import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { recordingLogger } from '../../../../test/fake-server.js'
import { LogRestart } from '../../../kernel/ports/broker.js'
import type { BrokerStats } from '../../../kernel/ports/broker-stats.js'
import { type BrokerChange, BrokerWatch } from './broker-watch.js'

const STATS: BrokerStats = {
  acceptedCount: 0,
  rejectedCount: 0,
  receivedCount: 0,
  surplusCount: 0,
  malformedCount: 0,
  pendingCount: 12,
  pendingBytes: 99,
  lostCount: 0,
  behindCount: 0,
}

describe('BrokerWatch', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  function watched() {
    const { logger, lines } = recordingLogger()
    const changes: BrokerChange[] = []
    const watch = new BrokerWatch({
      broker: { name: 'rabbitmq', stats: () => STATS },
      address: 'amqp://host',
      hideSecrets: (text) => text.replaceAll('sesame', '***'),
      logger,
      onChange: (change) => changes.push(change),
      now: () => Date.now(),
    })
    return { watch, lines, changes, told: () => lines.map(({ level, message }) => `${level} ${message}`) }
  }

  it('logs one line when the broker is lost and one when it is back, with how long and how many waited', () => {
    const { watch, lines, told } = watched()
    watch.change('up')
    vi.advanceTimersByTime(60_000)
    for (let index = 0; index < 100; index++) watch.change('down', new Error('sesame: ECONNRESET'))
    vi.advanceTimersByTime(1_500)
    watch.change('up')
    vi.advanceTimersByTime(60_000)
    expect(told()).toEqual([
      'info the broker is up',
      'warn the broker is lost; publishes wait',
      'info the broker is back',
    ])
    const where = { broker: 'rabbitmq', address: 'amqp://host' }
    expect(lines[1]?.fields).toEqual({ ...where, reason: '***: ECONNRESET' })
    expect(lines[2]?.fields).toEqual({ ...where, awayMs: 1_500, waitingPublishes: 12 })
    expect(watch.lastAwayMs).toBe(1_500)
  })

  // Symptom: after other rules of the log the operator read "the broker is lost", and "comes and goes". Cause: the link is made
  // anew for another epoch of the log, and the watch saw a lost link.
  it('says that the log is opened again, and not that the broker is lost', () => {
    const { watch, lines, told } = watched()
    watch.change('up')
    watch.change('down', new LogRestart('the log is opened again (rules-differ)'))
    watch.change('up')
    expect(told().slice(1)).toEqual([
      'warn the log of the broker is opened again; publishes wait',
      'info the log of the broker goes on',
    ])
    expect(lines[1]?.fields).toMatchObject({ reason: 'the log is opened again (rules-differ)' })
    watch.change('down', new LogRestart('another epoch of the log has begun'))
    watch.change('up')
    vi.advanceTimersByTime(10_000)
    expect(told().slice(3)).toEqual(['warn the log of the broker was opened again'])
  })

  it('says that the broker is lost when it is not reached again after its log began anew', () => {
    const { watch, told } = watched()
    watch.change('up')
    watch.change('down', new LogRestart('another epoch of the log has begun'))
    vi.advanceTimersByTime(10_000)
    watch.change('down', new Error('ECONNREFUSED'))
    watch.change('down', new Error('ECONNREFUSED'))
    watch.change('up')
    expect(told().slice(1)).toEqual([
      'warn the log of the broker is opened again; publishes wait',
      'warn the broker is lost; publishes wait',
      'info the broker is back',
    ])
  })

  it('says that the broker comes and goes when at least one loss was of the broker', () => {
    const { watch, told } = watched()
    watch.change('up')
    watch.change('down', new Error('ECONNRESET'))
    watch.change('up')
    for (const cause of [new LogRestart('another epoch'), new Error('ECONNRESET')]) {
      watch.change('down', cause)
      watch.change('up')
    }
    vi.advanceTimersByTime(10_000)
    expect(told().at(-1)).toBe('warn the broker comes and goes')
  })

  it('says once per loss that the broker refuses a node that it took before', () => {
    const { watch, lines, told } = watched()
    const refused = new WebMQError('E_BROKER_REFUSED', { detail: 'WRONGPASS sesame' })
    watch.change('down', refused)
    watch.change('up')
    watch.change('down', new Error('ECONNRESET'))
    for (let attempts = 0; attempts < 5; attempts++) watch.change('down', refused)
    const refusals = () => told().filter((line) => line.startsWith('error the broker refuses this node'))
    expect(refusals()).toHaveLength(1)
    expect(lines.at(-1)?.fields).toMatchObject({ broker: 'rabbitmq', reason: expect.stringContaining('WRONGPASS ***') })
    watch.change('up')
    watch.change('down', refused)
    expect(refusals()).toHaveLength(2)
  })

  it('logs a broker that comes and goes every ten seconds, with how often, and how it ends', () => {
    const { watch, told, lines } = watched()
    watch.change('up')
    for (let index = 0; index < 300; index++) {
      watch.change('down')
      vi.advanceTimersByTime(50)
      watch.change('up')
      vi.advanceTimersByTime(50)
    }
    vi.advanceTimersByTime(10_000)
    expect(told().length).toBeLessThan(10)
    const rest = lines.map(({ fields }) => Number(Object(fields).moreLosses ?? 0)).reduce((sum, count) => sum + count)
    // What has a line of its own, and what is counted in one, is all there was.
    expect(told().filter((line) => line.startsWith('warn the broker is lost')).length + rest).toBe(300)
    expect(lines.at(-1)?.fields).toMatchObject({ status: 'up' })
  })

  it('logs the return from a loss that was only counted', () => {
    const { watch, told } = watched()
    watch.change('up')
    for (const status of ['down', 'up', 'down'] as const) watch.change(status)
    vi.advanceTimersByTime(10_000)
    watch.change('up')
    expect(told().slice(-2)).toEqual(['warn the broker comes and goes', 'info the broker is back'])
  })

  it('says once that a broker is not reached yet, and nothing of the time before it first was as a loss', () => {
    const { watch, told, changes } = watched()
    for (let index = 0; index < 5; index++) watch.change('down', new Error('ECONNREFUSED'))
    vi.advanceTimersByTime(3_000)
    expect(watch.report()).toEqual({ name: 'rabbitmq', status: 'down', reason: 'ECONNREFUSED', sinceMs: 3_000 })
    watch.change('up')
    expect(told()).toEqual(['warn the broker is not reached yet', 'info the broker is up'])
    expect(watch.awayMs).toBe(0)
    expect(changes).toEqual([{ status: 'up', previous: 'down' }])
  })

  it('tells every change with what it was before, without secrets, and knows since when it is so', () => {
    const { watch, changes } = watched()
    const cause = new Error('alarm: sesame')
    watch.change('up')
    watch.change('blocked', cause)
    vi.advanceTimersByTime(40)
    expect(watch.report()).toEqual({ name: 'rabbitmq', status: 'blocked', reason: 'alarm: ***', sinceMs: 40 })
    watch.change('down')
    vi.advanceTimersByTime(60)
    expect(watch.awayMs).toBe(100)
    watch.change('up')
    expect(changes).toEqual([
      { status: 'up', previous: 'down' },
      { status: 'blocked', previous: 'up', reason: 'alarm: ***', cause },
      { status: 'down', previous: 'blocked' },
      { status: 'up', previous: 'down' },
    ])
    expect(watch.report()).toEqual({ name: 'rabbitmq', status: 'up', sinceMs: 0 })
    vi.advanceTimersByTime(1_000)
    expect(watch.awayMs).toBe(100)
  })

  it('has nothing to tell once the node stops', () => {
    const { watch, changes, told } = watched()
    watch.change('up')
    watch.stop()
    watch.change('down')
    vi.advanceTimersByTime(60_000)
    expect(changes).toHaveLength(1)
    expect(told()).toEqual(['info the broker is up'])
  })
})
