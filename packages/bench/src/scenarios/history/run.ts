import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadBalancer } from 'webmq-services'
import { BACKEND_LIMITS, Backends } from '../../backends.js'
import { isEmbedded } from '../../brokers/broker-choice.js'
import { type RunningBroker, startBroker } from '../../brokers/running-broker.js'
import { Loadgen } from '../../loadgen/loadgen.js'
import type { HistoryRequest, VirtualUsersPlan } from '../../loadgen/plans.js'
import { nowUs } from '../../measure/clock.js'
import { startBalancer, withParts } from '../../parts.js'
import type { RunProgress } from '../../run-progress.js'
import { carrierOf, type HistoryCase, type HistoryConfig, iterationSeconds, stagesOf } from './options.js'
import type { HistoryMark, HistoryObservation } from './result.js'

/** The history that a user asks for: the last ten seconds. */
const HISTORY_WINDOW_MS = 10_000
const HISTORY_REQUEST: HistoryRequest = {
  first: 'rewind=10000 limit=500',
  next: 'limit=500',
  windowMs: HISTORY_WINDOW_MS,
}
/** Several times the ten seconds of 16 messages per second and key that users ask for. */
const HISTORY_RULE = '#=1000,1m'
const KEY_PREFIX = 'bench.history.'
/** A user's timeout for a connection or an answer. */
const USER_TIMEOUT_MS = 10_000
/** Time allowed beyond the ramp and the last iterations: for waiting users and the final checks. */
const MAX_RUN_OVERHEAD_S = 90
/** Pauses at their longest, compared with their means. */
const LONGEST_PAUSES = 1.3
const STATS_INTERVAL_MS = 500

export interface HistoryRunContext {
  readonly config: HistoryConfig
  readonly program: string
  readonly progress: RunProgress
  readonly signal: AbortSignal
}

/**
 * Makes one run; when it settles, no process of it is left.
 * @throws {RunError} when a process did not start, or died.
 */
export async function observeHistory(
  testCase: HistoryCase,
  { config, program, progress, signal }: HistoryRunContext,
): Promise<HistoryObservation> {
  return await withParts(signal, async (parts) => {
    const kind = carrierOf(testCase)
    progress.phase(isEmbedded(kind) ? 'starting' : `starting ${kind}`)
    const hasLog = testCase.broker !== 'none'
    const broker = await parts.add(() => startBroker({ kind }, testCase.backends, { hasLog }))
    const settingsOf = (index: number) => ({
      ...broker.nodeOptions(index),
      ...BACKEND_LIMITS,
      ...(hasLog ? { history: [HISTORY_RULE] } : { historyMaxMessages: 0 }),
    })
    const backends = await parts.add(() => new Backends(testCase.backends, config.transport, settingsOf))
    const users = await parts.add(() => new Loadgen({ program, threads: 1 }))
    await Promise.all([backends.ready(), users.ready()])
    const { ports } = backends
    const balancer = ports.length === 1 ? undefined : await parts.add(() => startBalancer(ports))
    const own = { backends, broker, users, balancer, port: balancer?.port ?? ports[0] ?? 0 }
    return await new HistoryRun(config, own, progress, parts.signal).observe()
  })
}

interface Parts {
  readonly backends: Backends
  readonly broker: RunningBroker
  readonly users: Loadgen
  /** Before several backends. */
  readonly balancer: LoadBalancer | undefined
  /** That the users connect to. */
  readonly port: number
}

class HistoryRun {
  readonly #config: HistoryConfig
  readonly #parts: Parts
  readonly #progress: RunProgress
  readonly #signal: AbortSignal

  constructor(config: HistoryConfig, parts: Parts, progress: RunProgress, signal: AbortSignal) {
    this.#config = config
    this.#parts = parts
    this.#progress = progress
    this.#signal = signal
  }

  async observe(): Promise<HistoryObservation> {
    const { users, broker, port } = this.#parts
    const { startUsers, stages, fullFromMs, fullMs } = stagesOf(this.#config)
    const { duration, channels, sendersRatio, sendingRate, rounds, seed } = this.#config
    const plan: VirtualUsersPlan = {
      port,
      startUsers,
      stages,
      channels,
      keyPrefix: KEY_PREFIX,
      usersPerSender: Math.floor(1 / sendersRatio),
      sendingRate,
      rounds: rounds + 2,
      history: HISTORY_REQUEST,
      seed,
      timeoutMs: USER_TIMEOUT_MS,
    }
    const iterationMs = iterationSeconds(this.#config) * LONGEST_PAUSES * 1_000
    const start = await this.#mark()
    const startMs = nowUs() / 1_000
    const run = users.runUsers(plan, duration * 1_000 + iterationMs + MAX_RUN_OVERHEAD_S * 1_000)
    const watching = this.#watch(run, duration * 1_000 + iterationMs)
    for (const work of [run, watching]) work.catch(() => undefined) // Awaited below, if nothing fails before.
    const markAt = async (ms: number) => {
      await sleep(Math.max(0, startMs + ms - nowUs() / 1_000), undefined, { signal: this.#signal })
      return await this.#mark()
    }
    const fullFrom = await Promise.race([markAt(fullFromMs), failureOf(run)])
    const fullTo = await Promise.race([markAt(fullFromMs + fullMs), failureOf(run)])
    const report = await run
    await watching
    return {
      report,
      marks: { start, fullFrom, fullTo, end: await this.#mark() },
      brokerPeakRssBytes: broker.peakRssBytes(),
    }
  }

  async #mark(): Promise<HistoryMark> {
    const { backends, broker, users, balancer } = this.#parts
    const [samples, stats] = await Promise.all([backends.sample(), users.stats()])
    return {
      atUs: nowUs(),
      backends: samples,
      brokerCpuSeconds: broker.cpuSeconds(),
      balancerCpuSeconds: balancer?.cpuSeconds() ?? null,
      users: stats,
    }
  }

  /** Shows how far the run is. */
  async #watch(run: Promise<unknown>, expectedMs: number): Promise<void> {
    let progress = (await this.#parts.users.stats()).users
    let isOver = false
    const over = run.then(
      () => (isOver = true),
      () => (isOver = true), // The caller that awaits the run gets its error.
    )
    const poll = (async () => {
      while (!isOver) {
        progress = (await this.#parts.users.stats()).users ?? progress
        this.#progress.phase(`${(progress?.users ?? 0).toLocaleString('en')} users`)
        await Promise.race([over, sleep(STATS_INTERVAL_MS, undefined, { ref: false })])
      }
    })()
    const counts = () => ({
      broadcasts: progress?.broadcastsSent ?? 0,
      deliveries: progress?.broadcastsReceived ?? 0,
    })
    await this.#progress.during(Promise.all([over, poll]), { expectedMs, counts })
  }
}

/** Rejects as the work does; never resolves. */
async function failureOf(work: Promise<unknown>): Promise<never> {
  return await new Promise((_, reject) => {
    work.catch(reject)
  })
}
