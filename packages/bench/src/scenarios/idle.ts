import { setTimeout as sleep } from 'node:timers/promises'
import { processUsage } from '../measure/process-usage.js'
import { column, VERDICT_COLUMN } from '../results/columns.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import type { Trial } from '../trials/trial.js'
import { usageBetween } from '../trials/trial.js'
import type { TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

/** Connections made before the first sample, because the first ones also allocate pools, code and tables. */
const FIRST_SHARE = 0.1
/**
 * Connections that come and go before the first sample, never more at once than it counts, to warm compilers and pools.
 */
const WARMUP_CONNECTIONS = 5_000
const MAX_WARMUP_ROUNDS = 20
/**
 * V8's young generation grows in steps of megabytes while connections come, up to 16 MiB per half, and shrinks after
 * about 40 s of rest. Here it has its full size from the start, so it does not count as memory of connections.
 */
const FULL_YOUNG_GENERATION = '--min-semi-space-size=16'
const SETTLE_MS = 500

const idle: TrialScenario<TrialConfig> = {
  name: 'idle',
  summary: 'connections that listen and do nothing: memory of one, and CPU of all',
  examples: [
    ['--tiers 1000,10000', 'memory per connection at two tiers'],
    ['--tls --target webmq-native,uws,ws', 'with TLS'],
  ],
  abilities: [],
  defaults: { hasTls: true, targets: ['webmq-native', 'uws', 'ws', 'raw'], tiers: [1_000, 5_000, 10_000], duration: 5 },
  caseColumns: [],
  columns: [
    column('bytesPerConnection', 'Memory each', 'bytes', 'lower'),
    column('baselineRssBytes', 'Before', 'bytes'),
    column('serverRssBytes', 'Server RSS', 'bytes', 'lower'),
    column('serverCpuShare', 'Server CPU cores', 'number', 'lower'),
    VERDICT_COLUMN,
  ],
  readConfig: (common) => common,
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'idle', subscribers, fields: {} })),
  notes: () => [
    'Memory in user space, by resident size: what the connections after the first tenth have added, per connection. The kernel has some 3.8 KB a side beside it.',
    `Before that up to ${WARMUP_CONNECTIONS} connections come and go, never more at once than that tenth.`,
    'Each connection listens to one pattern (or topic) that all share. Targets of Node collect garbage before each look, and have a young generation of full size.',
  ],
  measure: measureIdle,
}

/** Makes the connections and lets them rest. */
async function measureIdle({
  config,
  choice,
  testCase,
  progress,
  signal,
  startTrial,
}: TrialContext): Promise<Measured> {
  const { subscribers } = testCase
  const trial = await startTrial({ nodeFlags: [FULL_YOUNG_GENERATION] })
  const first = Math.max(1, Math.floor(subscribers * FIRST_SHARE))
  const isNode = choice.spec.program !== 'raw'
  progress.phase('warming up')
  const others = trial.addLoadgen()
  await others.ready()
  for (let round = 0; round < Math.min(MAX_WARMUP_ROUNDS, WARMUP_CONNECTIONS / first); round++) {
    await trial.subscribe(first, {}, others)
    await others.close(false)
    await trial.allGone()
  }
  await trial.subscribe(first, {}, others)
  progress.phase('connecting')
  const baselineRssBytes = await settledRssBytes(trial, isNode, signal)
  if (subscribers > first) await trial.subscribe(subscribers - first)
  const serverRssBytes = await settledRssBytes(trial, isNode, signal)

  progress.phase('idling')
  const start = await trial.mark()
  await progress.during(sleep(config.duration * 1_000, undefined, { signal }), { expectedMs: config.duration * 1_000 })
  const end = await trial.mark()
  const usage = usageBetween(start, end)
  const [{ open }, { open: openBefore }] = await Promise.all([trial.loadgen.stats(), others.stats()])
  const closedCount = subscribers - open - openBefore
  return {
    figures: {
      ...usage,
      serverRssBytes,
      baselineRssBytes,
      bytesPerConnection: per(serverRssBytes - baselineRssBytes, subscribers - first),
      serverCpuShare: per(usage.serverCpuSeconds, (end.atUs - start.atUs) / 1_000_000),
      ...judge({ failure: closedCount > 0 ? `${closedCount} connections were closed` : null }),
    },
  }
}

async function settledRssBytes({ target }: Trial, isNode: boolean, signal: AbortSignal): Promise<number> {
  await sleep(SETTLE_MS, undefined, { signal })
  if (isNode) await target.collect()
  return processUsage(target.pid).rssBytes
}

export const idleScenario = createTrialScenario(idle)
