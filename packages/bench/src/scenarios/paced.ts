import { UsageError } from '../exit-codes.js'
import {
  column,
  DELIVERY_COLUMNS,
  DELIVERY_COST_COLUMN,
  JUDGEMENT_COLUMNS,
  LOSS_COLUMNS,
  percentileColumns,
  SERVER_COLUMNS,
} from '../results/columns.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { deliverySeries, fanOutFigures, measureFanOut, whyClosed, whyLate } from '../trials/fan-out.js'
import { latencyMs } from '../trials/trial.js'
import { checkTickSize, positiveNumbers, type TrialConfig } from '../trials/trial-options.js'
import type { Measured, TrialContext, TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface PacedConfig extends TrialConfig {
  /** Messages per second. */
  readonly rates: readonly number[]
}

const paced: TrialScenario<PacedConfig> = {
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
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99']),
    ...percentileColumns('fanoutMs', 'all', ['p50', 'p95', 'p99']),
    column('publishLateMs.p99', 'Publisher late p99', 'ms', 'lower'),
    column('serverCpuShare', 'Server CPU cores', 'number', 'lower'),
    DELIVERY_COST_COLUMN,
    ...LOSS_COLUMNS,
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command.option('--rate <list>', 'messages per second, one condition each', positiveNumbers, [100])
  },
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

async function measurePaced({ config, testCase, progress, startTrial }: TrialContext<PacedConfig>): Promise<Measured> {
  const { payload: payloadBytes, duration, warmup } = config
  const perSecond = Number(testCase.fields.ratePerSecond)
  const trial = await startTrial({ isLossless: true })
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const load = async (seconds: number, phase: string, firstSeq?: number) =>
    await measureFanOut(
      trial,
      async ({ target }) => await target.publishPaced({ perSecond, durationMs: seconds * 1_000, payloadBytes }),
      { count: { latency: true, fanout: true }, durationMs: seconds * 1_000, firstSeq, progress, phase },
    )
  const before = warmup * perSecond >= 1 ? await load(warmup, 'warming up') : undefined
  const window = await load(duration, 'publishing', before === undefined ? undefined : before.published.lastSeq + 1)
  const { counted, published, usage, lostCount, generatorUtilization } = window
  const { duplicateCount, reorderedCount } = counted
  return {
    figures: {
      ...fanOutFigures(window, payloadBytes),
      latencyMs: latencyMs(counted.latencyUs),
      fanoutMs: latencyMs(counted.completeFanoutUs),
      publishLateMs: latencyMs(published.lateUs),
      serverCpuShare: usage.serverCpuSeconds / Math.max(duration, published.drainedUs / 1_000_000),
      ...judge({
        lostCount,
        duplicateCount,
        reorderedCount,
        generatorUtilization,
        failure: whyClosed(window),
        serverLate: whyLate(window, Math.round(perSecond * duration)),
      }),
    },
    series: [deliverySeries(window)],
  }
}

/** A load at a fixed rate: its cost and its latency. */
export const pacedScenario = createTrialScenario(paced)
