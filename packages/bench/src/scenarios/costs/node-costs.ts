import { setTimeout as sleep } from 'node:timers/promises'
import { type Fit, leastSquares } from '../../measure/least-squares.js'
import type { NodeCosts } from '../../model/coefficients.js'
import { paceOf } from '../../model/flush-pacing.js'
import { cellOf } from '../../results/result.js'
import { type FanOutWindow, measureFanOut, whyClosed } from '../../trials/fan-out.js'
import { type Trial, type Usage, usageBetween } from '../../trials/trial.js'
import type { Measured, TrialContext } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import { measureIdle } from '../idle.js'
import { measureStorm } from '../storm.js'
import type { CostsConfig } from './config.js'
import { inTurn } from './in-turn.js'

/** Few connections: the cost of a publish shows. */
const FEW_LISTENERS = 10
const FEW_RATES = [500, 2_000]
/** Messages per second to every listener: one message per write, and more and more. */
const RATES = [20, 100, 400, 1_000, 4_000]
const LARGE_PAYLOAD_BYTES = 1_000
const LARGE_RATES = [50, 1_000]
const PUBLISHERS = 100
const PUBLISHES_PER_SECOND = 4_000
const PINGS_PER_CONNECTION = 2
const KEEPALIVE_INTERVAL_MS = 500

/** One window, and what was offered in it. */
interface Window {
  readonly listeners: number
  readonly perSecond: number
  readonly payloadBytes: number
  readonly seconds: number
  readonly window: FanOutWindow
  readonly reads: number
}

type CostsContext = TrialContext<CostsConfig>

/** The costs of one node with the memory broker. */
export async function measureNode(context: CostsContext): Promise<Measured> {
  const { config, progress } = context
  const idle = await inTurn(context, async (part) => {
    return await measureIdle({ ...part, testCase: { mode: 'idle', subscribers: config.connections, fields: {} } })
  })
  const storm = await inTurn(context, async (part) => {
    return await measureStorm({
      ...part,
      config: { ...config, auth: 'jwt', batch: 500, handshake: 'full' },
      testCase: { mode: 'jwt', subscribers: config.connects, fields: {} },
    })
  })
  const number = ({ figures }: Measured, key: string) => Number(cellOf(figures, key) ?? 0)

  const few = await inTurn(context, async (part) => {
    const trial = await part.startTrial({ isLossless: true })
    await trial.subscribe(FEW_LISTENERS)
    const windows: Window[] = []
    for (const rate of FEW_RATES) windows.push(await window(trial, part, FEW_LISTENERS, rate, config.payload))
    return { windows, idleCores: await rest(trial, part) }
  })
  const many = await inTurn(context, async (part) => {
    const trial = await part.startTrial({ isLossless: true })
    await trial.subscribe(config.listeners)
    const windows: Window[] = []
    for (const rate of RATES) windows.push(await window(trial, part, config.listeners, rate, config.payload))
    for (const rate of LARGE_RATES) {
      windows.push(await window(trial, part, config.listeners, rate, LARGE_PAYLOAD_BYTES))
    }
    progress.phase('keepalives')
    return { windows, keepaliveUs: await pings(trial, part, few.idleCores) }
  })
  const clientPublishUs = await inTurn(context, async (part) => await publishes(part, few.idleCores))
  const windows = [...few.windows, ...many.windows]
  const server = serverFit(windows)
  const [, publishS = 0, writeS = 0, frameS = 0, byteS = 0] = server.coefficients
  const generator = generatorFit(windows)
  const [readS = 0, generatorFrameS = 0] = generator.coefficients
  const node: NodeCosts = {
    baseBytes: number(idle, 'baselineRssBytes'),
    connectionBytes: Math.max(0, number(idle, 'bytesPerConnection')),
    idleCores: few.idleCores,
    keepaliveUs: many.keepaliveUs,
    connectUs: 1e6 / number(storm, 'connectsPerServerCpuSecond'),
    publishUs: publishS * 1e6,
    clientPublishUs,
    writeUs: writeS * 1e6,
    frameUs: frameS * 1e6,
    byteNs: byteS * 1e9,
    frameBytes: frameBytesOf(windows),
    generatorReadUs: readS * 1e6,
    generatorFrameUs: generatorFrameS * 1e6,
  }
  const residuals = {
    'node: CPU of publishes, writes, messages and bytes': server.residual,
    'node: messages per write, by the rule of the engine': pacingResidual(windows, node),
    'generator: CPU of reads and messages': generator.residual,
  }
  return { figures: { node, residuals, windows: windows.map(described), ...judgeAll(windows, [idle, storm]) } }
}

async function window(
  trial: Trial,
  { config, progress }: CostsContext,
  listeners: number,
  perSecond: number,
  payloadBytes: number,
): Promise<Window> {
  const durationMs = config.duration * 1_000
  const started = performance.now()
  const measured = await measureFanOut(
    trial,
    async ({ target }) => await target.publishPaced({ perSecond, durationMs, payloadBytes }),
    {
      count: { latency: true, fanout: true },
      durationMs,
      firstSeq: undefined,
      progress,
      phase: `${perSecond}/s to ${listeners}, ${payloadBytes} bytes`,
    },
  )
  const seconds = (performance.now() - started) / 1_000
  return { listeners, perSecond, payloadBytes, seconds, window: measured, reads: measured.counted.reads }
}

function serverFit(windows: readonly Window[]): Fit {
  return leastSquares(
    windows.map(({ window, payloadBytes, reads }) => ({
      // Each window starts a thread that paces it; that and idling cost about the same in all of them.
      counts: [1, window.published.count, reads, window.counted.frames, window.counted.frames * payloadBytes],
      total: window.usage.serverCpuSeconds,
    })),
  )
}

function generatorFit(windows: readonly Window[]): Fit {
  return leastSquares(
    windows.map(({ window, reads }) => ({
      counts: [reads, window.counted.frames],
      total: window.usage.generatorCpuSeconds,
    })),
  )
}

function frameBytesOf(windows: readonly Window[]): number {
  const frames = windows.reduce((sum, { window }) => sum + window.counted.frames, 0)
  const extra = windows.reduce((sum, { window, payloadBytes }) => {
    return sum + window.counted.wireBytes - window.counted.frames * payloadBytes
  }, 0)
  return frames === 0 ? 0 : extra / frames
}

/** How far the rule of the engine is from what the reads show. */
function pacingResidual(windows: readonly Window[], { writeUs, frameUs, byteNs }: NodeCosts): number {
  const squares = windows.map(({ listeners, perSecond, payloadBytes, window, reads }) => {
    const { framesPerWrite } = paceOf({
      connections: listeners,
      messagesPerSecond: perSecond,
      writeS: writeUs * 1e-6,
      frameS: frameUs * 1e-6 + payloadBytes * byteNs * 1e-9,
    })
    const measured = window.counted.frames / Math.max(1, reads)
    return (framesPerWrite / measured - 1) ** 2
  })
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / Math.max(1, squares.length))
}

/** The processor time of a server whose connections do nothing. */
async function rest(trial: Trial, { config, signal }: CostsContext): Promise<number> {
  const start = await trial.mark()
  await sleep(config.duration * 1_000, undefined, { signal })
  const end = await trial.mark()
  return usageBetween(start, end).serverCpuSeconds / ((end.atUs - start.atUs) / 1e6)
}

async function pings(trial: Trial, { choice }: CostsContext, idleCores: number): Promise<number> {
  const { text, await: awaited } = choice.spec.wire.ping
  const options = { intervalMs: KEEPALIVE_INTERVAL_MS, kind: 'app', text, await: awaited } as const
  await trial.loadgen.ping({ ...options, perConnection: 1 }) // Compilers and pools.
  const { used, seconds, result } = await usedBy(trial, () =>
    trial.loadgen.ping({ ...options, perConnection: PINGS_PER_CONNECTION }),
  )
  return perEvent(used, seconds, idleCores, result.count)
}

/** Clients publish with an id, so each publish is answered. */
async function publishes(context: CostsContext, idleCores: number): Promise<number> {
  const { config, progress } = context
  progress.phase('publishes of clients')
  const trial = await context.startTrial({})
  await trial.tryConnect({ count: PUBLISHERS })
  const frame = `publish $SEQ bench.in\n{"seq":$SEQ,"pad":"${'x'.repeat(Math.max(0, config.payload - 24))}"}`
  const flood = async () =>
    await trial.loadgen.floodIn({
      durationMs: config.duration * 1_000,
      frame,
      mode: 'paced',
      perSecond: PUBLISHES_PER_SECOND,
    })
  await flood() // Compilers and pools.
  const before = (await trial.target.sample()).receivedCount
  const { used, seconds } = await usedBy(trial, flood)
  const count = (await trial.target.sample()).receivedCount - before
  return perEvent(used, seconds, idleCores, count)
}

async function usedBy<T>(trial: Trial, work: () => Promise<T>) {
  const start = await trial.mark()
  const result = await work()
  const end = await trial.mark()
  const used: Usage = usageBetween(start, end)
  return { used, seconds: (end.atUs - start.atUs) / 1e6, result }
}

function perEvent({ serverCpuSeconds }: Usage, seconds: number, idleCores: number, count: number): number {
  return count === 0 ? 0 : (Math.max(0, serverCpuSeconds - seconds * idleCores) / count) * 1e6
}

function described({ listeners, perSecond, payloadBytes, seconds, window, reads }: Window) {
  const { serverCpuSeconds, generatorCpuSeconds } = window.usage
  return {
    listeners,
    perSecond,
    payloadBytes,
    seconds,
    serverCpuSeconds,
    generatorCpuSeconds,
    published: window.published.count,
    frames: window.counted.frames,
    reads,
  }
}

/** A window that lost messages, or a case that failed, is no basis for a coefficient. */
function judgeAll(windows: readonly Window[], others: readonly Measured[]) {
  const failed = others.find(({ figures }) => figures.verdict !== 'ok' && figures.verdict !== 'generator saturated')
  const closed = windows.map(({ window }) => whyClosed(window)).find((reason) => reason !== null)
  return judge({
    lostCount: windows.reduce((sum, { window }) => sum + window.lostCount, 0),
    failure: failed?.figures.verdictReason ?? closed ?? null,
  })
}
