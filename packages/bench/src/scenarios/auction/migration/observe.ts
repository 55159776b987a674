import type { Histogram } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClockOffset } from '../../../loadgen/events.js'
import type { Loadgen } from '../../../loadgen/loadgen.js'
import { type LatencySummary, mergeHistograms, summarizeLatency } from '../../../measure/latency-histogram.js'
import type { RunProgress } from '../../../run-progress.js'
import { itemName, placeBids } from '../bidding.js'
import { crowdOf } from '../crowd.js'
import type { AuctionConfig } from '../options.js'
import type { AuctionCase, AuctionMark, AuctionProcesses } from '../processes.js'
import { type Reconciliation, reconcile } from '../reconciliation.js'
import type { WatcherResult } from './messages.js'
import { Watchers } from './watchers.js'

export interface MigrationObservation {
  readonly crowd: readonly number[]
  readonly connectMs: LatencySummary
  readonly connectsPerSecond: number
  readonly expectedCount: number
  readonly results: readonly WatcherResult[]
  readonly answers: LatencySummary
  readonly reconciliation: Reconciliation
  readonly marks: Readonly<Record<'start' | 'end', AuctionMark>>
  readonly offsets: readonly ClockOffset[]
}

export interface MigrationContext {
  readonly config: AuctionConfig
  readonly testCase: AuctionCase
  readonly processes: AuctionProcesses
  /** Compares the clocks. */
  readonly loadgen: Loadgen
  readonly progress: RunProgress
  readonly signal: AbortSignal
}

/** The node that leaves. */
const LEAVING = 0
const POLL_MS = 50
/** Time for clients to move, and to get what they have missed. */
const CATCH_UP_TIMEOUT_MS = 60_000

/** One run: real clients, bids, and in the middle of them SIGTERM for a node, whose clients move to the others. */
export async function observeMigration(context: MigrationContext): Promise<MigrationObservation> {
  const { config, testCase, processes, loadgen, progress } = context
  const crowd = crowdOf(testCase.connections, config.items, config.zipf)
  const urls = processes.nodes.urls(config.hasTls ? 'wss' : 'ws')
  const watchers = new Watchers(
    crowd.flatMap((count, item) => Array.from({ length: count }, () => item)),
    { urls, hasTls: config.hasTls },
  )
  try {
    progress.phase('connecting')
    const started = await progress.during(watchers.ready())
    const durationUs = Math.max(...started.map((thread) => thread.durationUs))
    const names = crowd.map((_, item) => itemName(item))
    await Promise.all(names.map((name) => processes.gateway.open(name)))
    const offsets = [await loadgen.offset({ port: processes.gateway.port })]
    const bidding = await bidAndDrain(context, watchers, names)
    offsets.push(await loadgen.offset({ port: processes.gateway.port }))
    const results = await watchers.finish()
    progress.phase('comparing with Redis')
    return {
      crowd,
      connectMs: summarizeMerged(started.map(({ connects }) => connects)),
      connectsPerSecond: (testCase.connections / durationUs) * 1_000_000,
      expectedCount: config.bids * testCase.connections,
      results,
      ...bidding,
      reconciliation: await compare(context, names, crowd, results),
      offsets,
    }
  } finally {
    await watchers.stop()
  }
}

/** Bids; drains a node after half of them; waits until everybody is live and has the last one, or that is given up. */
async function bidAndDrain(context: MigrationContext, watchers: Watchers, names: readonly string[]) {
  const { config, processes, progress, signal } = context
  const { warmup, bids, intervalMs } = config
  const plan = { items: names, intervalMs, signal }
  const bid = (firstBid: number, count: number, onBid?: (accepted: number) => void) => {
    const round = placeBids(processes.gateway, {
      ...plan,
      firstBid,
      bids: count,
      ...(onBid === undefined ? {} : { onBid }),
    })
    return Promise.race([watchers.failed, round])
  }
  if (warmup > 0) {
    progress.phase('warming up')
    await bid(0, warmup)
    await everybodyHas(warmup, context, watchers)
  }
  watchers.begin(warmup + 1)
  const start = await processes.mark()
  progress.phase('bidding')
  const total = bids * names.length
  let draining: Promise<void> | undefined
  const { answers } = await bid(warmup, bids, (accepted) => {
    progress.update(accepted / total, `${accepted} bids`)
    if (accepted < total / 2 || draining !== undefined) return
    progress.phase('bidding while a node leaves')
    draining = processes.nodes.drain(LEAVING)
    draining.catch(() => undefined) // Awaited below.
  })
  await draining
  await everybodyHas(warmup + bids, context, watchers)
  const end = await processes.mark()
  return { answers: summarizeLatency(answers), marks: { start, end } }
}

/** Resolves when all clients are live and have this number, or after a timeout: then the counts show who has not. */
async function everybodyHas(seq: number, { testCase, signal }: MigrationContext, watchers: Watchers): Promise<void> {
  const deadlineMs = performance.now() + CATCH_UP_TIMEOUT_MS
  while ((await watchers.doneCount(seq)) < testCase.connections && performance.now() < deadlineMs) {
    await sleep(POLL_MS, undefined, { signal })
  }
}

async function compare(
  { processes }: MigrationContext,
  names: readonly string[],
  crowd: readonly number[],
  results: readonly WatcherResult[],
): Promise<Reconciliation> {
  const items = crowd.map((connections) => ({ accepted: [] as number[], connections, seen: new Map<number, number>() }))
  for (const { seen } of results) {
    for (const [item, ofItem] of seen) {
      const total = items[item]?.seen
      for (const [seq, count] of ofItem) total?.set(seq, (total.get(seq) ?? 0) + count)
    }
  }
  for (const [index, name] of names.entries())
    items[index]?.accepted.push(...(await processes.gateway.acceptedSeqs(name)))
  return reconcile(items)
}

function summarizeMerged(histograms: readonly Histogram[]): LatencySummary {
  return summarizeLatency(mergeHistograms(histograms))
}
