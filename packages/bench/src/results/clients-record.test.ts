import { describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import { compareResults } from '../report/compare.js'
import { csvText } from '../report/csv.js'
import { asRecord } from '../report/read-record.js'
import { recordPage } from '../report/record-page.js'
import { type ClientsRecord, clientsRecord } from './clients-record.js'

const { machine } = fixtureRecord({ tiers: [10] })
const latencyMs = { p50: 0.4, p95: 0.9, p99: 1.4, max: 6 }
const RECORD: ClientsRecord = {
  command: 'node benchmark.js --clients 100',
  machine,
  scenario: 'clients',
  config: {
    clients: 100,
    backends: 1,
    listens: 10,
    publishRate: 5,
    keyPoolSize: 50,
    duration: 10,
    warmup: 2,
    messageSize: 1_024,
    broker: 'memory',
    transport: 'native',
    clientsBy: 'library',
    seed: 1,
    workers: 1,
  },
  results: {
    publishedCount: 5_000,
    expectedCount: 100_000,
    deliveredCount: 100_000,
    lossRatio: 0,
    duplicateCount: 0,
    reorderedCount: 0,
    fanOutRatio: 20,
    drainMs: 0,
    latencyMs,
    perBackend: [],
  },
  verdict: 'ok',
  verdictReason: null,
  rates: { publishedPerSecond: 500, expectedPerSecond: 10_000, deliveredPerSecond: 10_000 },
  irregularities: {
    unexpectedCount: 0,
    publishErrorCount: 0,
    refusedCount: 4,
    unacknowledgedCount: 0,
    firstPublishError: null,
    reconnectCount: 0,
    gapCount: 0,
    clientErrorCount: 0,
    closedCount: 0,
    firstClose: null,
    hasDrainTimedOut: false,
  },
  server: { cpuSeconds: 0.5, deliveriesPerCpuSecond: 200_000, rssBytes: 7e7 },
  generator: { cpuSeconds: 2, utilization: 0.3, eventLoopLagMs: latencyMs, sendLagMs: latencyMs },
  assertions: [],
}

describe('a run of the clients scenario', () => {
  it('is written as CSV and as a page like the others', () => {
    const record = asRecord(JSON.parse(JSON.stringify(RECORD)), 'a file')
    expect(csvText(record)).toMatch(/^scenario,target,.*\r\nclients,webmq-native,100,1,10,5,50,1024,500,10000,0.4,/)
    expect(recordPage(record)).toContain('Latency (ms)')
    expect(recordPage(record)).not.toContain('"kind":"bars"')
  })

  it('has its latency as bars, and its rates and cores over time', () => {
    const values = [1, 2]
    const record = asRecord(
      {
        ...RECORD,
        latencyBars: { edgesMs: [0.1, 1, 10], shares: [0.9, 0.1] },
        overTime: {
          stepMs: 1_000,
          publishedPerSecond: values,
          deliveredPerSecond: values,
          cores: { machine: values, servers: values, generator: values, broker: [null, null] },
        },
      },
      'a file',
    )
    const titles = ['Latency (ms), share of all', 'Throughput per second, webmq-native', 'Busy cores, webmq-native']
    for (const title of titles) expect(recordPage(record)).toContain(title)
    const [timeline] = record.timelines ?? []
    expect(timeline?.panels[1]?.lines.map(({ name }) => name)).toEqual(['machine', 'servers', 'generator'])
  })

  it('is compared with another of the same settings only', () => {
    const slower = { ...RECORD, server: { ...RECORD.server, deliveriesPerCpuSecond: 120_000 } }
    const { rows } = compareResults(clientsRecord(RECORD), clientsRecord(slower), { leastChange: 0.03 })
    expect(
      rows[0]?.cells.filter(({ difference }) => difference?.change === 'worse').map(({ column }) => column.key),
    ).toEqual(['deliveriesPerServerCpuSecond'])
    const more = { ...RECORD, config: { ...RECORD.config, clients: 200 } }
    expect(() => compareResults(clientsRecord(RECORD), clientsRecord(more), { leastChange: 0.03 })).toThrow(/in common/)
  })

  it('on a broker has its costs in the table, and is compared with one on another broker by target', () => {
    const on = (broker: 'redis' | 'nats', brokerCpuSeconds: number): ClientsRecord => ({
      ...RECORD,
      config: { ...RECORD.config, backends: 4, broker },
      broker: { cpuSeconds: brokerCpuSeconds },
      total: { cpuSeconds: 0.5 + brokerCpuSeconds, deliveriesPerCpuSecond: 100_000 / (0.5 + brokerCpuSeconds) },
    })
    const [redis, nats] = [clientsRecord(on('redis', 0.5)), clientsRecord(on('nats', 1.5))]
    expect(redis.rows[0]).toMatchObject({
      target: 'webmq-native+redis',
      brokerCpuSeconds: 0.5,
      deliveriesPerTotalCpuSecond: 100_000,
    })
    expect(csvText(redis)).toContain('brokerCpuSeconds')
    expect(recordPage(redis)).toContain('Broker CPU')
    expect(() => compareResults(redis, nats, { leastChange: 0.03 })).toThrow(/in common/)
    const targets = ['webmq-native+redis', 'webmq-native+nats'] as const
    const { rows } = compareResults(redis, nats, { leastChange: 0.03, targets })
    expect(
      rows[0]?.cells.filter(({ difference }) => difference?.change === 'worse').map(({ column }) => column.key),
    ).toEqual(['brokerCpuSeconds', 'deliveriesPerTotalCpuSecond'])
  })

  it('whose clients the load generator played is not compared with one of the client library', () => {
    const played = { ...RECORD, config: { ...RECORD.config, clientsBy: 'generator' as const } }
    expect(clientsRecord(played).rows[0]).toMatchObject({ target: 'webmq-native', clientsBy: 'generator' })
    expect(() => compareResults(clientsRecord(RECORD), clientsRecord(played), { leastChange: 0.03 })).toThrow(
      /in common/,
    )
    const { clientsBy: _, ...config } = RECORD.config
    expect(clientsRecord({ ...RECORD, config }).rows[0]).toMatchObject({ clientsBy: 'library' })
  })

  it('of a bench that knew no brokers can still be read', () => {
    const [row] = clientsRecord(RECORD).rows
    expect(row).toMatchObject({ target: 'webmq-native', brokerCpuSeconds: null, deliveriesPerTotalCpuSecond: null })
  })

  it('that lost, doubled or reordered anything says so in its verdict', () => {
    const lossy = { ...RECORD, results: { ...RECORD.results, deliveredCount: 99_990, reorderedCount: 2 } }
    expect(clientsRecord(lossy).rows[0]).toMatchObject({
      verdict: 'lost messages',
      verdictReason: '10 lost, 0 doubled, 2 out of order',
      gapCount: 10,
    })
  })
})
