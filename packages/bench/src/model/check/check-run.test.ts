import { describe, expect, it } from 'vitest'
import type { ResultRecord, ResultRow } from '../../results/result.js'
import { NOT_MEASURED } from '../../trials/run-trials.js'
import { ROUND_COSTS } from '../fixture.js'
import { casesOf } from './cases.js'
import { checkRun, predictRun } from './check-run.js'

function record(scenario: string, config: object, row: Record<string, unknown>): ResultRecord {
  const full = {
    ...NOT_MEASURED,
    target: 'webmq-native',
    mode: 'single',
    subscribers: 1_000,
    verdict: 'ok',
    verdictReason: null,
    repeatCount: 1,
    spread: {},
    ...row,
  } as unknown as ResultRow
  return { scenario, config: { ...config }, rows: [full] } as unknown as ResultRecord
}

describe('a check', () => {
  it('predicts a paced run by its rate, and says how wrong it is', () => {
    const measured = { ratePerSecond: 100, deliveriesPerSecond: 100_000, serverCpuSeconds: 2, latencyMs: { p99: 5 } }
    const [one] = casesOf(record('paced', { duration: 5, payload: 100 }, measured))
    if (one === undefined) throw new Error('there is a case')
    // 500 publishes of 20 us, 500,000 writes of 4.2 us, and 5 s of idling.
    expect(predictRun(ROUND_COSTS, one, 2).serverCpuSeconds).toBeCloseTo(0.05 + 0.01 + 2.1, 6)
    const { figures } = checkRun(ROUND_COSTS, one, 2)
    expect(figures.map(({ figure }) => figure)).toEqual(['server CPU s', 'deliveries', 'p99 ms'])
    expect(figures[0]?.error).toBeCloseTo(0.08, 6)
    expect(figures[1]?.error).toBe(0)
    expect(figures[2]?.predicted).toBeGreaterThan(3)
  })

  it('knows the rows of the auction, the fleet, real clients and a flood over a broker', () => {
    const auction = record(
      'auction',
      { items: 1, bids: 10, isSharded: false },
      {
        target: 'webmq-native+nats',
        nodes: 4,
        publishedPerSecond: 2,
        deliveriesPerSecond: 20_000,
        bytesPerSecond: 4e6,
        subscribers: 10_000,
        serverCpuSeconds: 1,
        brokerCpuSeconds: 0.01,
        latencyMs: { p99: 90 },
      },
    )
    expect(casesOf(auction)[0]).toMatchObject({
      kind: 'nats',
      nodes: 4,
      seconds: 5,
      published: 10,
      payloadBytes: 200,
      listenersPerKey: 10_000,
      isPaced: true,
    })
    const fleet = record(
      'fleet',
      { backends: 3, publishers: 10, rooms: 30, messageSize: 100 },
      {
        target: 'webmq-native+redis',
        fault: 'none',
        subscribers: 300,
        publishedCount: 800,
        publishedPerSecond: 200,
        deliveriesPerSecond: 2_000,
        serverCpuSeconds: 1,
      },
    )
    expect(casesOf(fleet)[0]).toMatchObject({
      kind: 'redis',
      nodes: 3,
      seconds: 4,
      published: 800,
      listenersPerKey: 10,
      isLogged: true,
    })
    expect(
      casesOf(
        record(
          'fanout',
          { duration: 2, payload: 100 },
          {
            mode: 'rabbitmq',
            publishedPerSecond: 1_000,
            deliveriesPerSecond: 1e6,
            serverCpuSeconds: 3,
            brokerCpuSeconds: 1,
          },
        ),
      )[0],
    ).toMatchObject({ kind: 'rabbitmq', published: 2_000, publishedBy: 'relay' })
    const clients = record(
      'clients',
      { duration: 10 },
      {
        target: 'webmq-native+redis',
        backends: 4,
        listens: 10,
        publishRate: 5,
        keyPoolSize: 100,
        messageSize: 1_024,
        subscribers: 200,
        serverCpuSeconds: 8,
        brokerCpuSeconds: 0.5,
        deliveriesPerSecond: 20_000,
      },
    )
    const [one] = casesOf(clients)
    expect(one).toMatchObject({
      kind: 'redis',
      nodes: 4,
      published: 10_000,
      listenersPerKey: 20,
      publishedBy: 'client',
    })
    if (one !== undefined) expect(predictRun(ROUND_COSTS, one, 2).deliveries).toBe(200_000)
  })

  it('is refused for other scenarios, and for results without a row of ours', () => {
    expect(() => casesOf(record('storm', {}, {}))).toThrow(/'storm' cannot be checked; those of paced/)
    expect(() => casesOf(record('paced', { duration: 1 }, { target: 'uws', ratePerSecond: 1 }))).toThrow(
      /no row of webmq-native/,
    )
    expect(() => casesOf(record('fleet', {}, { fault: 'kill' }))).toThrow(/no row/)
  })
})
