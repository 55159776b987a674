import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createServer, type ServerOptions } from 'webmq-server'
import { PlayedClients } from '../src/generator/played-clients.js'
import { KeyPlan, type KeyPlanOptions } from '../src/load/key-plan.js'
import { publicationsOf } from '../src/load/send-schedule.js'
import { writePlan } from '../src/load/written-plan.js'
import { findLoadgen } from '../src/loadgen/find.js'
import { Loadgen } from '../src/loadgen/loadgen.js'
import { nowUs } from '../src/measure/clock.js'

const PLAN: KeyPlanOptions = {
  clientCount: 12,
  listensPerClient: 3,
  keyPoolSize: 6,
  publishRatePerSecond: 20,
  durationUs: 500_000,
  warmupUs: 100_000,
  seed: 5,
}

async function startServer(options: ServerOptions = {}) {
  const server = createServer({ host: '127.0.0.1', port: 0, logLevel: 'error', ...options })
  const { url } = await server.start()
  onTestFinished(async () => await server.stop())
  return { server, url }
}

async function play(urls: readonly string[], changes: Partial<KeyPlanOptions> = {}, workerCount = 1) {
  const program = await findLoadgen({ phase: () => undefined, note: () => undefined })
  const planOptions = { ...PLAN, ...changes }
  const clients = new PlayedClients({ program, planOptions, messageSizeBytes: 128, urls, workerCount })
  clients.failed.catch(() => undefined) // Ends with the test.
  onTestFinished(async () => await clients.stop())
  return clients
}

/** Sends the whole plan, and waits until everything was sent. */
async function sendAll(clients: PlayedClients): Promise<void> {
  const startUs = nowUs() + 150_000
  await clients.begin({ startUs, endUs: startUs + PLAN.durationUs })
  await vi.waitFor(() => expect(clients.totals.isSendingDone).toBe(true), { interval: 20 })
}

/** Expected deliveries of the window, in all. */
function expectedCount(): number {
  const plan = new KeyPlan(PLAN)
  const counted = publicationsOf(plan).filter(({ turn }) => turn >= 0)
  return counted.reduce((sum, { key }) => sum + plan.listenerCount(key), 0)
}

describe('the clients of the load generator', () => {
  it('offer the messages of the plan, and count every delivery once, with its latency', async () => {
    const { url } = await startServer()
    const clients = await play([url], {}, 2)
    await clients.ready()
    await sendAll(clients)
    const expected = expectedCount()
    await vi.waitFor(() => expect(clients.totals.deliveredCount).toBe(expected), { interval: 20 })
    expect(await clients.cpuSeconds()).toBeGreaterThan(0)
    const results = await clients.finish()
    const sum = (read: (result: (typeof results)[number]) => number) =>
      results.reduce((total, result) => total + read(result), 0)
    expect(results).toHaveLength(2)
    expect(sum((result) => result.expectedCount)).toBe(expected)
    expect(sum((result) => result.perBackend[0]?.publishedCount ?? 0)).toBe(120)
    expect(sum((result) => result.perBackend[0]?.clientCount ?? 0)).toBe(12)
    expect(sum((result) => result.perBackend[0]?.latency.count ?? 0)).toBe(expected)
    expect(sum((result) => result.sendLag.count)).toBe(120)
    expect(sum((result) => result.acknowledgedCount)).toBe(120)
    for (const result of results) {
      expect(result).toMatchObject({ publishErrorCount: 0, clientErrorCount: 0, closedCount: 0, gapCount: 0 })
      expect(result.perBackend).toMatchObject([{ duplicateCount: 0, reorderedCount: 0, unexpectedCount: 0 }])
    }
  })

  it('send again, in order, what the server refuses for a time', async () => {
    const { server, url } = await startServer({ maxPublishesPerSecond: 15, publishBurstMs: 100 })
    const clients = await play([url])
    await clients.ready()
    await sendAll(clients)
    const expected = expectedCount()
    await vi.waitFor(() => expect(clients.totals.deliveredCount).toBe(expected), { interval: 20 })
    expect(server.stats().publishRateCounts.connection).toBeGreaterThan(12)
    const [result] = await clients.finish()
    expect(result).toMatchObject({ acknowledgedCount: 120, publishErrorCount: 0, clientErrorCount: 0 })
    expect(result?.perBackend).toMatchObject([{ duplicateCount: 0, reorderedCount: 0, unexpectedCount: 0 }])
  })

  it('whose connection ends are counted as closed, and what they publish as failed', async () => {
    const { server, url } = await startServer()
    const clients = await play([url])
    await clients.ready()
    await server.stop()
    await sendAll(clients)
    const [result] = await clients.finish()
    expect(result).toMatchObject({ closedCount: 12, acknowledgedCount: 0, publishErrorCount: 120 })
    expect(result).toMatchObject({ firstClose: expect.stringMatching(/^closed \d+$/) })
    expect(result).toMatchObject({ firstPublishError: 'the connection has ended' })
  })

  it('that are refused fail the run, and say why', async () => {
    const { url } = await startServer({ maxListensPerConnection: 2 })
    const clients = await play([url])
    await expect(clients.ready()).rejects.toThrow(/client \d+: a listen was refused: E_LISTEN_LIMIT/)
    const nobody = await play(['ws://127.0.0.1:1/ws'])
    await expect(nobody.ready()).rejects.toThrow(/client \d+: connect ECONNREFUSED/)
    const tooMany = await play([url], { clientCount: 19_001, publishRatePerSecond: 2 })
    await expect(tooMany.ready()).rejects.toThrow(/1 to 19000 clients/)
    const tooMuch = await play([url], { clientCount: 1_000_000 })
    await expect(tooMuch.ready()).rejects.toThrow(/12,000,000 messages, and the load generator takes plans of at most/)
  })

  it('are the only plan of their generator', async () => {
    const { url } = await startServer()
    const program = await findLoadgen({ phase: () => undefined, note: () => undefined })
    const loadgen = new Loadgen({ program, threads: 2 })
    onTestFinished(async () => await loadgen.stop())
    await loadgen.ready()
    const window = { startUs: nowUs(), endUs: nowUs() }
    await expect(loadgen.beginClients(window)).rejects.toThrow('clients-begin: no clients are connected')
    const ports = [Number(new URL(url).port)]
    const clients = { ...writePlan(PLAN, 128), ports, path: '/ws', keyPrefix: 'bench' }
    await loadgen.connectClients(clients)
    expect(await loadgen.stats()).toMatchObject({ clients: { connectedCount: 12, publishedCount: 0 }, threads: 2 })
    await expect(loadgen.connectClients(clients)).rejects.toThrow('clients: another plan is under way')
    expect(await loadgen.finishClients()).toHaveLength(2)
    await loadgen.connectClients(clients)
  })
})
