import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'
import type { FloodedIn, InboundFrame } from '../loadgen/events.js'
import { column, JUDGEMENT_COLUMNS, LOSS_COLUMNS, SERVER_COLUMNS } from '../results/columns.js'
import type { ResultColumn } from '../results/result.js'
import { generatorShare, type Trial, usageBetween } from './trial.js'
import { type Figures, per, type TrialContext } from './trial-scenario.js'
import { judge } from './verdict.js'

export interface InboundOptions {
  readonly frame: InboundFrame
  /** Of the application's payload in a frame. */
  readonly payloadBytes: number
  /** Offers permessage-deflate, and fails without it. */
  readonly isCompressed?: boolean
}

const POLL_MS = 50
/** Messages are lost when the server's count has stood still for this long; TCP retransmits only after seconds. */
const QUIET_MS = 15_000

export const INBOUND_COLUMNS: readonly ResultColumn[] = [
  column('receivedPerSecond', 'Processed/s', 'rate', 'higher'),
  column('bytesPerSecond', 'Bandwidth', 'bytesPerSecond', 'higher'),
  column('receivedPerServerCpuSecond', 'Processed/CPU s', 'rate', 'higher'),
  ...LOSS_COLUMNS.filter(({ key }) => key === 'gapCount'),
  ...SERVER_COLUMNS,
  ...JUDGEMENT_COLUMNS,
]

export const INBOUND_NOTE =
  'Processed: counted by the server, when its session layer (of a library: its message handler) has had the message; what the sockets took is no throughput.'

/** All connections send as fast as their sockets take it; the server reports what it has processed. */
export async function measureInbound(
  { config, choice, testCase, progress, startTrial }: TrialContext,
  { frame, payloadBytes, isCompressed = false }: InboundOptions,
): Promise<Figures> {
  const trial = await startTrial(isCompressed ? { compression: true } : {})
  const { loadgen } = trial
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers, { compression: isCompressed })
  if (isCompressed) await requireCompression(trial, testCase.subscribers)
  const flood = async (seconds: number) => await loadgen.floodIn({ durationMs: seconds * 1_000, frame, mode: 'flood' })
  if (config.warmup > 0) {
    progress.phase('warming up')
    const before = (await trial.target.sample()).receivedCount
    const { writtenFrames } = await flood(config.warmup)
    await processed(trial, before + writtenFrames)
  }

  progress.phase('sending')
  const start = await trial.mark()
  await loadgen.startCounting({ seqField: false, latency: false, fanout: false })
  const flooded = await progress.during(flood(config.duration), { expectedMs: config.duration * 1_000 })
  const end = await trial.mark()
  const total = await processed(trial, start.sample.receivedCount + flooded.writtenFrames)
  const { frames: answerCount } = await loadgen.stopCounting({ timeoutMs: POLL_MS })
  const { closed } = await loadgen.stats()

  const usage = usageBetween(start, end)
  const count = end.sample.receivedCount - start.sample.receivedCount
  // Frames cut by the end of the warm-up have been completed too: at most one per connection.
  const lostCount = Math.max(0, flooded.writtenFrames - (total - start.sample.receivedCount))
  const receivedPerSecond = per(count, (end.atUs - start.atUs) / 1_000_000)
  const generatorUtilization = utilizationOf(flooded, config.generatorThreads)
  // A publish without an id is answered only when it is refused.
  const refusedCount = choice.spec.wire.connect.subprotocol === 'webmq.v1' ? answerCount : 0
  const failures = [
    ...(refusedCount > 0 ? [`${refusedCount.toLocaleString('en')} refused`] : []),
    ...Object.entries(closed).map(([code, count]) => `${count} connections closed with ${code}`),
  ]
  return {
    ...usage,
    receivedPerSecond,
    bytesPerSecond: receivedPerSecond === null ? null : receivedPerSecond * payloadBytes,
    receivedPerServerCpuSecond: per(count, usage.serverCpuSeconds),
    gapCount: lostCount,
    generatorUtilization,
    ...judge({
      lostCount,
      failure: failures.length > 0 ? failures.join(', ') : null,
      generatorUtilization,
    }),
  }
}

/** Waits until the server has processed this many, or stops; returns how many it has processed. */
async function processed({ target }: Trial, wanted: number): Promise<number> {
  let { receivedCount } = await target.sample()
  for (let quietMs = 0; receivedCount < wanted && quietMs < QUIET_MS; quietMs += POLL_MS) {
    await sleep(POLL_MS)
    const next = (await target.sample()).receivedCount
    if (next !== receivedCount) quietMs = 0
    receivedCount = next
  }
  return receivedCount
}

async function requireCompression({ loadgen }: Trial, count: number): Promise<void> {
  const { compressed } = await loadgen.stats()
  if (compressed < count) throw new RunError(`only ${compressed} of ${count} connections compress`)
}

function utilizationOf({ cpuUserUs, cpuSystemUs, durationUs }: FloodedIn, threads: number): number | null {
  return generatorShare((cpuUserUs + cpuSystemUs) / 1_000_000, durationUs / 1_000_000, threads)
}
