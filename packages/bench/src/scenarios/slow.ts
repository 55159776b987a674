import { positiveNumber } from '../options.js'
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
import { fanOutFigures, measureFanOut, whyLate } from '../trials/fan-out.js'
import { latencyMs } from '../trials/trial.js'
import { checkTickSize, shares, type TrialConfig } from '../trials/trial-options.js'
import type { Measured, TrialContext, TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface SlowConfig extends TrialConfig {
  readonly shares: readonly number[]
  /** Messages per second. */
  readonly rate: number
}

const slow: TrialScenario<SlowConfig> = {
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
  readConfig(common, values) {
    checkTickSize(common)
    return { ...common, shares: values.share as number[], rate: Number(values.rate) }
  },
  cases: ({ tiers, shares: slowShares }) =>
    tiers.flatMap((subscribers) =>
      slowShares.map((slowShare) => ({ mode: 'stop', subscribers, fields: { slowShare } })),
    ),
  notes: () => [
    'Everything but what the slow connections got: latency, deliveries and gaps are of those that read. Targets have their own defaults: uws drops in silence over 64 KiB, ws and socketio keep everything.',
  ],
  measure: measureSlow,
}

async function measureSlow({ config, testCase, progress, startTrial }: TrialContext<SlowConfig>): Promise<Measured> {
  const { payload: payloadBytes, duration, rate } = config
  const trial = await startTrial({})
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const { connections: slowCount } = await trial.loadgen.slow(Number(testCase.fields.slowShare))
  const durationMs = duration * 1_000
  const window = await measureFanOut(
    trial,
    // The publisher does not wait: the server must handle slow readers.
    async ({ target }) => await target.publishPaced({ perSecond: rate, durationMs, payloadBytes, isThrottled: false }),
    { count: { latency: true, fanout: false }, durationMs, firstSeq: undefined, progress, phase: 'publishing' },
  )
  const { closed } = await trial.loadgen.stats()
  const { counted, lostCount, generatorUtilization } = window
  const { duplicateCount, reorderedCount } = counted
  return {
    figures: {
      ...fanOutFigures(window, payloadBytes),
      latencyMs: latencyMs(counted.latencyUs),
      slowCount,
      slowClosedCount: Object.values(closed).reduce((sum, count) => sum + count, 0),
      ...judge({
        lostCount,
        duplicateCount,
        reorderedCount,
        generatorUtilization,
        serverLate: whyLate(window, Math.round(rate * duration)),
      }),
    },
  }
}

/** The effect of slow consumers on the others. */
export const slowScenario = createTrialScenario(slow)
