import { RunError } from '../../exit-codes.js'
import type { Connected, Counted, MessageReceipts } from '../../loadgen/events.js'
import type { Loadgen } from '../../loadgen/loadgen.js'
import { type LatencySummary, summarizeLatency } from '../../measure/latency-histogram.js'
import type { RunProgress } from '../../run-progress.js'
import { SERVER_NAME } from '../../trials/run-certificate.js'
import { reasons } from '../../trials/trial.js'
import { itemKey, itemName, placeBids } from './bidding.js'
import { crowdOf, shardsOf } from './crowd.js'
import type { AuctionConfig } from './options.js'
import type { AuctionCase, AuctionMark, AuctionProcesses } from './processes.js'
import { type Reconciliation, reconcile } from './reconciliation.js'

export interface FanOutObservation {
  readonly crowd: readonly number[]
  readonly connected: Connected
  /** Of the measured bids. */
  readonly counted: Counted
  /** Deliveries of the measured bids, if nothing is lost. */
  readonly expectedCount: number
  readonly answers: LatencySummary
  readonly reconciliation: Reconciliation
  /** Before the first measured bid and after its last delivery. */
  readonly marks: Readonly<Record<'start' | 'end', AuctionMark & { readonly generatorCpuSeconds: number }>>
  /** Connections that ended, by close code. */
  readonly closed: Readonly<Record<string, number>>
}

export interface FanOutContext {
  readonly config: AuctionConfig
  readonly testCase: AuctionCase
  readonly processes: AuctionProcesses
  readonly loadgen: Loadgen
  readonly progress: RunProgress
  readonly signal: AbortSignal
}

/** Time that deliveries may take after the last bid. */
const LAST_DELIVERY_TIMEOUT_MS = 15_000

/** One run: connections, bids, deliveries, and the comparison with Redis. */
export async function observeFanOut(context: FanOutContext): Promise<FanOutObservation> {
  const { config, testCase, processes, loadgen, progress } = context
  const { items, zipf, bids, warmup } = config
  const crowd = crowdOf(testCase.connections, items, zipf)
  progress.phase('connecting')
  const connected = await connect(context, crowd)
  const names = crowd.map((_, item) => itemName(item))
  await Promise.all(names.map((name) => processes.gateway.open(name)))

  const seen = crowd.map(() => new Map<number, number>())
  if (warmup > 0) {
    progress.phase('warming up')
    const { counted } = await bidAndCount(context, names, 0, warmup)
    addReceipts(seen, counted.bySeq ?? [])
  }
  progress.phase('bidding')
  const start = await mark(context)
  const { counted, answers } = await bidAndCount(
    context,
    names,
    warmup,
    bids,
    // A search asks what comes before the next bid would.
    config.isSearch ? config.intervalMs : LAST_DELIVERY_TIMEOUT_MS,
  )
  const end = await mark(context)
  addReceipts(seen, counted.bySeq ?? [])

  progress.phase('comparing with Redis')
  const accepted: number[][] = []
  for (const name of names) accepted.push(await processes.gateway.acceptedSeqs(name))
  const reconciled = crowd.map((connections, item) => ({
    accepted: accepted[item] ?? [],
    connections,
    seen: seen[item] ?? new Map(),
  }))
  return {
    crowd,
    connected,
    counted,
    expectedCount: bids * testCase.connections,
    answers,
    reconciliation: reconcile(reconciled),
    marks: { start, end },
    closed: (await loadgen.stats()).closed,
  }
}

/** @throws {RunError} unless every connection listens to its item. */
async function connect(
  { config, testCase, processes, loadgen, progress }: FanOutContext,
  crowd: readonly number[],
): Promise<Connected> {
  const { ports } = processes
  const shards = config.isSharded ? shardsOf(crowd, testCase.nodes) : []
  const groups = crowd.map((count, item) => {
    const port = ports[shards[item] ?? -1]
    return port === undefined ? { count } : { count, port }
  })
  const connected = await progress.during(
    loadgen.connect({
      count: testCase.connections,
      ports,
      groups,
      subprotocol: 'webmq.v1',
      ready: 'welcome',
      compression: config.hasCompression,
      ...(config.hasTls ? { tls: { serverName: SERVER_NAME, insecure: true, resume: false } } : {}),
    }),
  )
  if (connected.failed > 0) {
    throw new RunError(`${connected.failed} of ${testCase.connections} connections failed: ${reasons(connected)}`)
  }
  const { failed } = await loadgen.send([`listen 1 ${itemKey('$GROUP')}`], 'ok 1')
  if (failed > 0) throw new RunError(`${failed} connections got no answer to their listen`)
  return connected
}

/** Counts from before the first bid until every connection has the last one, or it is given up. */
async function bidAndCount(
  { config, processes, loadgen, progress, signal }: FanOutContext,
  names: readonly string[],
  firstBid: number,
  bids: number,
  timeoutMs = LAST_DELIVERY_TIMEOUT_MS,
) {
  await loadgen.startCounting({ firstSeq: firstBid + 1, clock: 'wall', bySeq: true, fanout: false })
  const { acceptedCount, answers } = await placeBids(processes.gateway, {
    items: names,
    firstBid,
    bids,
    intervalMs: config.intervalMs,
    signal,
    onBid: (count) => progress.update(count / (bids * names.length), `${count} bids`),
  })
  const counted = await loadgen.stopCounting({
    lastSeqs: names.map(() => firstBid + bids),
    timeoutMs,
  })
  return { counted, acceptedCount, answers: summarizeLatency(answers) }
}

async function mark({ processes, loadgen }: FanOutContext) {
  const [own, { cpuUserUs, cpuSystemUs }] = await Promise.all([processes.mark(), loadgen.stats()])
  return { ...own, generatorCpuSeconds: (cpuUserUs + cpuSystemUs) / 1_000_000 }
}

function addReceipts(seen: readonly Map<number, number>[], receipts: readonly MessageReceipts[]): void {
  for (const { group, seq, count } of receipts) seen[group]?.set(seq, count)
}
