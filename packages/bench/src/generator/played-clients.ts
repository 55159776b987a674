import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'
import type { KeyPlanOptions } from '../load/key-plan.js'
import { writePlan } from '../load/written-plan.js'
import { Loadgen } from '../loadgen/loadgen.js'
import type { PlayedTally, Recorded } from '../loadgen/plans.js'
import { createLatencyHistogram, recordUs } from '../measure/latency-histogram.js'
import type { Load, LoadTotals } from './load.js'
import type { LoadOptions } from './load-generator.js'
import { OPEN_ACCESS } from './load-generator.js'
import type { LoadResult } from './messages.js'
import type { Window } from './receiver.js'

/** How often the totals are asked for. */
const POLL_MS = 100
/** A plan is one line of JSON, and the load generator keeps it in memory. */
const MAX_MESSAGES = 2 ** 23
const NOTHING: LoadTotals = {
  connectedCount: 0,
  publishedCount: 0,
  deliveredCount: 0,
  arrivedCount: 0,
  isSendingDone: false,
}

export interface PlayedClientsOptions extends Omit<LoadOptions, 'access'> {
  readonly program: string
}

/** Clients that the load generator plays, in a process of its own, by the plan of the client library's clients. */
export class PlayedClients implements Load {
  readonly failed: Promise<never>
  readonly #options: PlayedClientsOptions
  readonly #loadgen: Loadgen
  readonly #stopping = new AbortController()
  #totals = NOTHING

  constructor(options: PlayedClientsOptions) {
    this.#options = options
    this.#loadgen = new Loadgen({ program: options.program, threads: options.workerCount })
    this.failed = this.#loadgen.failed
  }

  get totals(): LoadTotals {
    return this.#totals
  }

  async ready(): Promise<void> {
    const { planOptions, messageSizeBytes, urls } = this.#options
    requireFitting(planOptions)
    await this.#loadgen.ready()
    const addresses = urls.map((url) => new URL(url))
    const connected = this.#loadgen.connectClients({
      ...writePlan(planOptions, messageSizeBytes),
      ports: addresses.map(({ port }) => Number(port)),
      path: addresses[0]?.pathname ?? '/ws',
      keyPrefix: OPEN_ACCESS.keyPrefix,
    })
    connected.catch(ignore) // Awaited below, after the totals are asked for.
    void this.#poll().catch(ignore) // It ends with the process, which `failed` reports.
    await connected
  }

  async begin(window: Window): Promise<void> {
    await this.#loadgen.beginClients(window)
  }

  async cpuSeconds(): Promise<number> {
    const { cpuUserUs, cpuSystemUs } = await this.#loadgen.stats()
    return (cpuUserUs + cpuSystemUs) / 1_000_000
  }

  async finish(): Promise<LoadResult[]> {
    this.#stopping.abort()
    return (await this.#loadgen.finishClients()).map(resultOf)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#loadgen.stop()
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const { clients, threads } = await this.#loadgen.stats()
      if (clients !== undefined) this.#totals = { ...clients, isSendingDone: clients.doneThreads === threads }
      await sleep(POLL_MS, undefined, { signal })
    }
  }
}

/** @throws {RunError} when the plan has too many messages to be handed over. */
function requireFitting({ clientCount, publishRatePerSecond, warmupUs, durationUs }: KeyPlanOptions): void {
  const count = Math.ceil((clientCount * publishRatePerSecond * (warmupUs + durationUs)) / 1_000_000)
  if (count <= MAX_MESSAGES) return
  throw new RunError(
    `this plan has ${count.toLocaleString('en')} messages, and the load generator takes plans of at most ${MAX_MESSAGES.toLocaleString('en')}`,
  )
}

/** A thread's counts in the form of those of a worker. */
function resultOf(tally: PlayedTally): LoadResult {
  const { perBackend, sendLagUs, wakeLagUs, firstPublishError, firstClose, ...counts } = tally
  return {
    ...counts,
    perBackend: perBackend.map(({ latencyUs, ...backend }) => ({ ...backend, latency: histogramOf(latencyUs) })),
    ...(firstPublishError === null ? {} : { firstPublishError }),
    ...(firstClose === null ? {} : { firstClose }),
    // A client of the generator does not come back; its end is counted as a close.
    reconnectCount: 0,
    sendLag: histogramOf(sendLagUs),
    eventLoopLag: histogramOf(wakeLagUs),
  }
}

function histogramOf(recorded: Recorded) {
  const histogram = createLatencyHistogram()
  // Node's histogram records one value at a time: 0.2 us each, after the run.
  for (const [valueUs, count] of recorded) for (let left = count; left > 0; left--) recordUs(histogram, valueUs)
  return histogram
}

const ignore = () => undefined
