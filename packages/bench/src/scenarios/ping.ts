import { Option } from 'commander'
import { UsageError } from '../exit-codes.js'
import { positiveInteger } from '../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns, SERVER_COLUMNS } from '../results/columns.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { generatorShare, latencyMs, usageBetween } from '../trials/trial.js'
import type { TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type SubjectContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

export interface PingConfig extends TrialConfig {
  /** Of each connection. */
  readonly pings: number
  readonly kind: 'app' | 'ws'
  /** Milliseconds from one ping of a connection to its next; absent: as soon as the last is answered. */
  readonly interval?: number
}

const PING_TIMEOUT_MS = 60_000

export const ping: TrialScenario<PingConfig> = {
  name: 'ping',
  summary: 'all connections ping at once; each sends its next ping when the last is answered',
  examples: [
    ['--tiers 100,1000,5000', '50 pings per connection'],
    ['--tiers 1 --pings 5000', 'one connection: the round trip of an idle server'],
    ['--kind ws', "WebSocket's own pings, without the protocol"],
  ],
  abilities: ['ping'],
  defaults: { targets: ['webmq-native', 'uws', 'ws'], tiers: [100, 500, 1_000, 2_000, 5_000] },
  caseColumns: [],
  columns: [
    column('pingCount', 'Pings', 'count'),
    column('pingsPerSecond', 'Pings/s', 'rate', 'higher'),
    column('pingsPerServerCpuSecond', 'Pings/CPU s', 'rate', 'higher'),
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'p999', 'p9999', 'max']),
    faults('missingCount', 'Missing'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--pings <n>', 'pings per connection', positiveInteger, 50)
      .addOption(
        new Option('--kind <name>', "app: a message with an answer; ws: WebSocket's own ping")
          .choices(['app', 'ws'])
          .default('app'),
      )
  },
  readConfig(common, { pings, kind }) {
    const isSocketio = common.targets.find(({ spec }) => spec.name === 'socketio')
    if (kind === 'ws' && isSocketio)
      throw new UsageError('socketio: --kind ws measures the library below it; take --kind app')
    return { ...common, pings, kind }
  },
  cases: ({ tiers, kind }) => tiers.map((subscribers) => ({ mode: kind, subscribers, fields: {} })),
  notes: () => ['All connections ping concurrently: the latency is that of a full server, not of a single round trip.'],
  measure: measurePing,
}

/** All connections ping, and wait for every answer. */
export async function measurePing({
  config,
  choice,
  testCase,
  progress,
  startTrial,
}: SubjectContext<PingConfig>): Promise<Measured> {
  const { pings, kind, generatorThreads, interval } = config
  const trial = await startTrial({})
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const { text, await: awaited } = choice.spec.wire.ping
  const expectedMs = pings * (interval ?? 0)
  const options = {
    kind,
    timeoutMs: Math.round(expectedMs) + PING_TIMEOUT_MS,
    ...(kind === 'app' ? { text, await: awaited } : {}),
  }
  if (interval === undefined) {
    progress.phase('warming up')
    await trial.loadgen.ping({ ...options, perConnection: 1 })
  }

  progress.phase('pinging')
  const start = await trial.mark()
  const paced = interval === undefined ? {} : { intervalMs: Math.round(interval) }
  const pinging = trial.loadgen.ping({ ...options, ...paced, perConnection: pings })
  const pinged = await progress.during(pinging, interval === undefined ? {} : { expectedMs })
  const usage = usageBetween(start, await trial.mark())
  const seconds = pinged.durationUs / 1_000_000
  const generatorUtilization = generatorShare(usage.generatorCpuSeconds, seconds, generatorThreads)
  return {
    figures: {
      ...usage,
      pingCount: pinged.count,
      pingsPerSecond: per(pinged.count, seconds),
      pingsPerServerCpuSecond: per(pinged.count, usage.serverCpuSeconds),
      latencyMs: latencyMs(pinged.latencyUs),
      missingCount: pinged.missing,
      generatorUtilization,
      ...judge({
        failure: (await trial.whyClosed()) ?? (pinged.missing > 0 ? `${pinged.missing} pings were not answered` : null),
        generatorUtilization,
      }),
    },
  }
}

/** WSE's test 2: round trips while all connections ping at once. */
export const pingScenario = createTrialScenario(ping)
