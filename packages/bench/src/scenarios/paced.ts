import type { Command } from 'commander'
import { UsageError } from '../exit-codes.js'
import { positiveNumber } from '../options.js'
import {
  column,
  DELIVERY_COLUMNS,
  DELIVERY_COST_COLUMN,
  faults,
  JUDGEMENT_COLUMNS,
  LOSS_COLUMNS,
  percentileColumns,
  SERVER_COLUMNS,
} from '../results/columns.js'
import type { Published } from '../targets/messages.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { fanOutFigures, measureFanOut, seriesOf } from '../trials/fan-out.js'
import { latencyMs } from '../trials/trial.js'
import { checkTickSize, positiveNumbers, shares, type TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type SubjectContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

export interface PacedConfig extends TrialConfig {
  /** Messages per second. */
  readonly rates: readonly number[]
}

export const paced: TrialScenario<PacedConfig> = {
  name: 'paced',
  summary:
    'a fixed rate of messages to every connection: latency and cost at a load that is offered, the one that users see',
  examples: [
    ['--tiers 1000 --rate 100', '100,000 deliveries/s'],
    ['--tiers 1000 --rate 100,1000,16000 --target webmq-native,uws,raw,raw-loop --repeat 5', 'up to 16M deliveries/s'],
    ['--tls --tiers 1000 --rate 100', 'with TLS'],
    ['--tiers 1 --rate 10', 'an idle server: what the way itself takes'],
    ["--tiers 1000 --rate 1000 --assert 'webmq-native fanoutMs.p99 < 25ms' --assert gapCount=0", 'in CI'],
  ],
  abilities: ['fan-out'],
  defaults: {
    hasTls: true,
    targets: ['webmq-native', 'uws', 'raw'],
    tiers: [1, 100, 1_000],
    duration: 10,
    warmup: 1,
    payload: 100,
  },
  caseColumns: [column('ratePerSecond', 'Offered/s', 'rate')],
  columns: [
    ...DELIVERY_COLUMNS,
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
    ...percentileColumns('fanoutMs', 'all', ['p50', 'p95', 'p99']),
    column('publishLateMs.p99', 'Publisher late p99', 'ms', 'lower'),
    column('serverCpuShare', 'Server CPU cores', 'number', 'lower'),
    DELIVERY_COST_COLUMN,
    ...LOSS_COLUMNS,
    faults('reorderedCount', 'Out of order'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions: (command) => addRateOption(command, [100]),
  readConfig(common, values) {
    checkTickSize(common)
    const rates = values.rate as number[]
    const tooFew = rates.find((rate) => rate * common.duration < 1)
    if (tooFew !== undefined)
      throw new UsageError(`--rate ${tooFew} publishes nothing in --duration ${common.duration}`)
    return { ...common, rates }
  },
  cases: ({ tiers, rates }) =>
    tiers.flatMap((subscribers) =>
      rates.map((ratePerSecond) => ({ mode: 'single', subscribers, fields: { ratePerSecond } })),
    ),
  notes: () => [
    'Latency is receipt less the intended moment of publishing, per delivery; "all" is that of the last receiver of each message.',
  ],
  measure: measurePaced,
}

export function addRateOption(command: Command, rates: readonly number[]): void {
  command.option('--rate <list>', 'messages per second, one condition each', positiveNumbers, rates)
}

/** Publishes at a fixed rate to every connection; some of them may not read. */
export async function measurePaced({
  config,
  testCase,
  progress,
  startTrial,
}: SubjectContext<TrialConfig & { readonly rate?: number }>): Promise<Measured> {
  const { payload: payloadBytes, duration, warmup } = config
  const { ratePerSecond, slowShare } = testCase.fields
  const perSecond = Number(ratePerSecond ?? config.rate)
  // With slow readers the publisher does not wait: the server must handle them.
  const isThrottled = slowShare === undefined
  const trial = await startTrial(isThrottled ? { isLossless: true } : {})
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const slowCount = isThrottled ? null : (await trial.loadgen.slow(Number(slowShare))).connections
  const load = async (seconds: number, phase: string, before?: Published) => {
    const durationMs = seconds * 1_000
    const offered = { perSecond, durationMs, payloadBytes }
    const publish = async () => await trial.publishPaced(isThrottled ? offered : { ...offered, isThrottled })
    const count = { latency: true, fanout: isThrottled }
    return await measureFanOut(trial, publish, { count, durationMs, before, progress, phase })
  }
  const before = warmup * perSecond >= 1 ? await load(warmup, 'warming up') : undefined
  const window = await load(duration, 'publishing', before?.published)
  const { counted, published, usage, lostCount, generatorUtilization, closedReason, closedCount } = window
  const { duplicateCount, reorderedCount } = counted
  return {
    figures: {
      ...fanOutFigures(window, payloadBytes),
      latencyMs: latencyMs(counted.latencyUs),
      fanoutMs: latencyMs(counted.completeFanoutUs),
      publishLateMs: latencyMs(published.lateUs),
      serverCpuShare: per(usage.serverCpuSeconds, Math.max(duration, published.drainedUs / 1_000_000)),
      ...(isThrottled ? {} : { slowCount, slowClosedCount: closedCount }),
      ...judge({
        lostCount,
        duplicateCount,
        reorderedCount,
        generatorUtilization,
        failure: isThrottled ? closedReason : null,
        ...trial.lateness(published, counted, Math.round(perSecond * duration)),
      }),
    },
    series: seriesOf(window),
  }
}

export const pacedScenario = createTrialScenario(paced)

/** The effect of slow consumers on the others: the same load, to connections of which some do not read. */
export const slowScenario = createTrialScenario<
  TrialConfig & { readonly shares: readonly number[]; readonly rate: number }
>({
  name: 'slow',
  summary: 'a share of the connections stops reading: the effect on the others, on memory and on the slow ones',
  examples: [
    ['--tiers 1000 --share 0,0.1,0.5', '1,000 messages/s'],
    ['--payload 1000 --duration 20', 'more to pile up'],
  ],
  abilities: ['fan-out', 'slow-readers'],
  defaults: { targets: ['webmq-native', 'uws', 'ws'], tiers: [1_000], duration: 10, payload: 1_000 },
  caseColumns: [column('slowShare', 'Slow', 'percent')],
  columns: [
    ...DELIVERY_COLUMNS,
    ...percentileColumns('latencyMs', '', ['p50', 'p99']),
    DELIVERY_COST_COLUMN,
    ...LOSS_COLUMNS,
    column('slowCount', 'Slow ones', 'count'),
    column('slowClosedCount', 'closed', 'count'),
    column('serverPeakRssBytes', 'Server peak RSS', 'bytes', 'lower'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--share <list>', 'connections that do not read, 0 to 1, one condition each', shares, [0, 0.1])
      .option('--rate <n>', 'messages per second', positiveNumber, 1_000)
  },
  readConfig(common, { share, rate }) {
    checkTickSize(common)
    return { ...common, shares: share, rate }
  },
  cases: ({ tiers, shares: slowShares }) =>
    tiers.flatMap((subscribers) =>
      slowShares.map((slowShare) => ({ mode: 'stop', subscribers, fields: { slowShare } })),
    ),
  notes: () => [
    'Everything but what the slow connections got: latency, deliveries and gaps are of those that read. Targets have their own defaults: uws drops in silence over 64 KiB, ws and socketio keep everything.',
  ],
  measure: measurePaced,
})
