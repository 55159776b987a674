import { setTimeout as sleep } from 'node:timers/promises'
import type { Pinged } from '../loadgen/events.js'
import { positiveNumber } from '../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns, SERVER_COLUMNS } from '../results/columns.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { median } from '../trials/medians.js'
import { generatorShare, usageBetween } from '../trials/trial.js'
import type { TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface HoldConfig extends TrialConfig {
  /** Seconds from one ping of every connection to the next. */
  readonly pingInterval: number
}

const hold: TrialScenario<HoldConfig> = {
  name: 'hold',
  summary: 'idle connections with occasional pings: how many survive',
  examples: [
    ['--tiers 1000,10000', '30 s, a ping every 5 s'],
    ['--tiers 10000 --duration 300 --ping-interval 25', 'longer'],
  ],
  abilities: ['ping'],
  defaults: { targets: ['webmq-native', 'uws', 'ws'], tiers: [100, 1_000, 5_000, 10_000], repeat: 1, duration: 30 },
  caseColumns: [],
  columns: [
    { ...column('survivalRatio', 'Survival', 'percent', 'higher'), repeats: 'min' },
    column('pingCount', 'Pings', 'count'),
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
    faults('missingCount', 'Missing'),
    column('serverCpuShare', 'Server CPU cores', 'number', 'lower'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command.option('--ping-interval <s>', 'from one ping of every connection to the next', positiveNumber, 5)
  },
  readConfig: (common, { pingInterval }) => ({ ...common, pingInterval }),
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'app', subscribers, fields: {} })),
  notes: () => [
    'p50 is the median of the rounds’ p50; p95, p99 and max are those of the worst round. Each round everyone pings at once.',
  ],
  measure: measureHold,
}

async function measureHold({
  config,
  choice,
  testCase,
  progress,
  signal,
  startTrial,
}: TrialContext<HoldConfig>): Promise<Measured> {
  const { duration, pingInterval } = config
  const trial = await startTrial({})
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const { text, await: awaited } = choice.spec.wire.ping

  progress.phase('holding')
  const start = await trial.mark()
  const rounds: Pinged[] = []
  const work = (async () => {
    for (let atS = 0; atS < duration; atS += pingInterval) {
      const intervalS = Math.min(pingInterval, duration - atS)
      const timeoutMs = intervalS * 1_000
      const [pinged] = await Promise.all([
        trial.loadgen.ping({ perConnection: 1, kind: 'app', text, await: awaited, timeoutMs }),
        sleep(timeoutMs, undefined, { signal }),
      ])
      rounds.push(pinged)
    }
  })()
  await progress.during(work, { expectedMs: duration * 1_000 })
  const end = await trial.mark()
  const { open } = await trial.loadgen.stats()

  const usage = usageBetween(start, end)
  const lostCount = testCase.subscribers - open
  const missingCount = rounds.reduce((sum, { missing }) => sum + missing, 0)
  const seconds = (end.atUs - start.atUs) / 1_000_000
  return {
    figures: {
      ...usage,
      survivalRatio: open / testCase.subscribers,
      pingCount: rounds.reduce((sum, { count }) => sum + count, 0),
      latencyMs: latencyOf(rounds),
      missingCount,
      serverCpuShare: per(usage.serverCpuSeconds, seconds),
      generatorUtilization: generatorShare(usage.generatorCpuSeconds, seconds, config.generatorThreads),
      ...judge({
        failure:
          lostCount > 0
            ? `${lostCount} connections were closed`
            : missingCount > 0
              ? `${missingCount} pings were not answered`
              : null,
      }),
    },
  }
}

function latencyOf(rounds: readonly Pinged[]) {
  const all = rounds.flatMap(({ latencyUs }) => (latencyUs === null ? [] : [latencyUs]))
  if (all.length === 0) return null
  return {
    p50: (median(all.map(({ p50 }) => p50)) ?? 0) / 1_000,
    p95: Math.max(...all.map(({ p95 }) => p95)) / 1_000,
    p99: Math.max(...all.map(({ p99 }) => p99)) / 1_000,
    max: Math.max(...all.map(({ max }) => max)) / 1_000,
  }
}

export const holdScenario = createTrialScenario(hold)
