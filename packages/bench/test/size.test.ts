import { describe, expect, it } from 'vitest'
import { RUN_TIMEOUT_MS, useBench } from './bench-run.js'

const { benchmark, rowsOf } = useBench()

describe('scenarios of size', { timeout: 2 * RUN_TIMEOUT_MS }, () => {
  it('holds connections of several servers, each with a token, pings and broadcasts', async () => {
    const load = ['--connections', '41', '--processes', '2', '--duration', '1']
    const [row] = await rowsOf('held', ...load, '--ping-interval', '0.25', '--broadcast-interval', '0.5')
    expect(row).toMatchObject({ target: 'webmq-native', subscribers: 41, processCount: 2, closedCount: 0 })
    // 4 rounds of pings, and 2 broadcasts of each server.
    expect(row).toMatchObject({ pingCount: 4 * 41, missingCount: 0, broadcastCount: 2, gapCount: 0, duplicateCount: 0 })
    expect(row?.latencyMs).toMatchObject({ p50: expect.any(Number), p99: expect.any(Number), max: expect.any(Number) })
    expect(row?.serverRssBytes).toBeGreaterThan(2 * 30_000_000)
    expect(row?.slabBytes).toEqual(expect.any(Number))
    expect(Number(row?.coresPerMillion) * 41).toBeCloseTo(Number(row?.serverCpuShare) * 1_000_000, 3)
  })

  it('says how many processes have enough descriptors', async () => {
    const { exitCode, output } = await benchmark('held', '--connections', '4000000000', '--processes', '1')
    expect(exitCode).toBe(1)
    expect(output).toMatch(/1 processes have too few descriptors, \d+ each: .+; \d+ have enough/)
  })

  it('prices a fleet by its number of nodes', async () => {
    const load = ['--nodes', '2,3', '--duration', '1', '--patterns', '4', '--members', '3', '--questions', '1']
    const { exitCode, output, record } = await benchmark('nodes', '--broker', 'redis,mesh', ...load)
    expect(exitCode, output).toBe(0)
    const { rows } = await record()
    expect(rows.map(({ target, nodes }) => [target, nodes])).toEqual([
      ['webmq-native+redis', 2],
      ['webmq-native+redis', 3],
      ['webmq-native+mesh', 2],
      ['webmq-native+mesh', 3],
    ])
    const [two, three, mesh] = rows
    // A glob at Redis for each pattern of each node, and two connections of each node.
    expect(two).toMatchObject({ verdict: 'ok', patternObjects: 1, brokerConnections: 4 })
    expect(three).toMatchObject({ verdict: 'ok', patternObjects: 1, brokerConnections: 6 })
    // Redis sends each message of the log to every node.
    expect(Number(three?.loggedBytes)).toBeGreaterThan(3 * 100)
    expect(mesh).toMatchObject({ verdict: 'ok', brokerConnections: null, loggedBrokerUs: null })
    for (const row of rows) expect(Number(row.restNodeMs)).toBeGreaterThan(0)
    expect(output).toMatch(/webmq-native\+redis: .*brokerConnections 0 \+ 2 N/)
  })
})
