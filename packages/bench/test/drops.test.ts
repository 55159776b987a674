import { describe, expect, it } from 'vitest'
import { RUN_TIMEOUT_MS, useBench } from './bench-run.js'

const CLIENTS = 20
const LOAD = ['--clients', String(CLIENTS), '--rooms', '2', '--processes', '2', '--publish-rate', '20']
/** Nothing missed, nothing twice, and nothing wrong said of it. */
const UNHARMED = {
  // The machine may have other work.
  verdict: expect.stringMatching(/^(ok|machine saturated)$/),
  deliveredRatio: 1,
  wholeRatio: 1,
  gapCount: 0,
  toldLostCount: 0,
  duplicateCount: 0,
  reorderedCount: 0,
  toldGapCount: 0,
  falseRecoveredCount: 0,
  missingCount: 0,
}

describe('clients that lose their connections', { timeout: RUN_TIMEOUT_MS }, () => {
  const { benchmark, rowsOf } = useBench({ hasLoadgen: false })

  it('get everything once from WebMQ when their networks drop, and the floor shows what that was', async () => {
    const drops = ['--duration', '6', '--drop', '0.6', '--drops', '2']
    const { exitCode, output, record } = await benchmark('jitter', ...LOAD, ...drops, '--target', 'webmq,socketio,uws')
    expect(exitCode, output).toBe(0)
    const { rows, versions } = await record()
    const [webmq, socketio, floor] = rows
    expect(rows.map(({ target }) => target)).toEqual(['webmq', 'socketio', 'uws'])
    expect(webmq, output).toMatchObject({ ...UNHARMED, subscribers: CLIENTS, dropCount: 2 * CLIENTS })
    // A drop may begin before the client is back from the one before.
    expect(webmq?.recoveredCount).toBeGreaterThan(CLIENTS)
    expect(Number(webmq?.expectedCount)).toBe(Number(webmq?.publishedCount) * (CLIENTS / 2))
    expect(Number(socketio?.recoveredCount) + Number(socketio?.toldGapCount)).toBeGreaterThan(CLIENTS / 2)
    expect(floor).toMatchObject({ verdict: 'lost messages', recoveredCount: 0, toldGapCount: 0, toldLostCount: 0 })
    expect(Number(floor?.gapCount)).toBeGreaterThan(CLIENTS)
    expect(output).toContain('silently-lost: client ')
    for (const row of rows) {
      expect(row.awayMs).toMatchObject({ p50: expect.any(Number), max: expect.any(Number) })
      expect(row.backMs).toMatchObject({ p50: expect.any(Number), max: expect.any(Number) })
      expect(row.serverCpuSeconds).toBeGreaterThan(0)
    }
    expect(versions).toMatchObject({
      socketio: expect.stringContaining('socket.io 4'),
      uws: expect.stringMatching(/uws|uwebsockets/i),
    })
  })

  it.each(['haproxy', 'nginx'])('get everything once while all nodes behind %s are deployed', async (balancer) => {
    const load = [...LOAD, '--balancer', balancer, '--steady', '0.5', '--rest', '0.2']
    const [row] = await rowsOf('avalanche', ...load)
    expect(row).toMatchObject({ ...UNHARMED, target: 'webmq', mode: balancer, subscribers: CLIENTS })
    expect(row).toMatchObject({ brokenTextCount: 0, twiceCount: 0 })
    // Each client has moved once at least.
    expect(row?.absenceCount).toBeGreaterThanOrEqual(CLIENTS)
    expect(row?.wordCount).toBeGreaterThan(100)
    expect(row?.answeredCount).toBeGreaterThan(50)
    expect(Number(row?.deployMs)).toBeGreaterThan(Number(row?.backMs))
    expect(row?.latencyMs).toMatchObject({ p99: expect.any(Number) })
    expect(row?.quietMs).toMatchObject({ p99: expect.any(Number) })
  })

  it('refuses drops that have no room, and rooms without clients', async () => {
    for (const flags of [
      ['jitter', '--duration', '4', '--drops', '2'],
      ['avalanche', '--clients', '2', '--rooms', '3'],
    ] as const) {
      const [scenario, ...rest] = flags
      const { exitCode, output } = await benchmark(scenario, ...rest)
      expect(exitCode, output).toBe(2)
      expect(output).toContain('--')
    }
  })
})
