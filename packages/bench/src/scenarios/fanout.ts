import { type Command, Option } from 'commander'
import { positiveInteger } from '../options.js'
import {
  DELIVERY_COLUMNS,
  DELIVERY_COST_COLUMN,
  JUDGEMENT_COLUMNS,
  LOSS_COLUMNS,
  SERVER_COLUMNS,
} from '../trials/columns.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { deliverySeries, fanOutFigures, measureFanOut, whyClosed } from '../trials/fan-out.js'
import { checkTickSize, type TrialConfig } from '../trials/trial-options.js'
import type { Measured, TrialContext, TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface FanOutConfig extends TrialConfig {
  readonly mode: 'single'
  /** Messages per turn of the publisher's event loop. */
  readonly batch: number
  /** What webmq lets wait for one connection; absent: its default. */
  readonly maxOutbox?: number
}

/** What is lost in a flood is found at its end: latency and the fan-out of each message would only cost. */
const COUNT = { latency: false, fanout: false } as const

const fanOut: TrialScenario<FanOutConfig> = {
  name: 'fanout',
  summary: 'one publisher as fast as it can, every connection gets every message',
  examples: [
    ['--tiers 10,100,1000', 'three tiers'],
    ['--target webmq-native,uws,raw --tiers 100,1000,5000 --repeat 5', 'beside uWebSockets.js and the physical limit'],
    ['--target webmq-native:1,webmq-native:2 --tiers 1000', 'one I/O thread against two'],
    ["--assert gapCount=0 --assert 'webmq-native/uws deliveriesPerServerCpuSecond >= 5'", 'in CI'],
  ],
  abilities: ['fan-out'],
  defaults: {
    targets: ['webmq-native', 'uws', 'raw'],
    tiers: [10, 100, 500, 1_000, 2_000, 5_000],
    duration: 10,
    warmup: 1,
    payload: 100,
  },
  caseColumns: [],
  columns: [
    ...DELIVERY_COLUMNS,
    DELIVERY_COST_COLUMN,
    ...LOSS_COLUMNS,
    ...SERVER_COLUMNS,
    { key: 'serverPeakRssBytes', title: 'Server peak RSS', unit: 'B', format: 'bytes', better: 'lower' },
    { key: 'wireBytesPerDelivery', title: 'Bytes on the wire each', unit: 'B', format: 'number', better: 'lower' },
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command: Command) {
    command
      .addOption(new Option('--mode <name>', 'how many servers').choices(['single']).default('single'))
      .option('--batch <n>', "messages per turn of the publisher's event loop", positiveInteger, 64)
      .option('--max-outbox <bytes>', 'what webmq lets wait for a connection (default: its own)', positiveInteger)
  },
  readConfig(common, { mode, batch, maxOutbox }) {
    checkTickSize(common)
    return { ...common, mode, batch, ...(maxOutbox === undefined ? {} : { maxOutbox }) }
  },
  cases: ({ tiers, mode }) => tiers.map((subscribers) => ({ mode, subscribers, fields: {} })),
  notes: () => [
    'No latency: the publisher does not wait for readers, so a message’s time would be that of the queue before it.',
    'Nothing may be lost: the publisher waits while too much waits in the server. webmq-native and raw say so themselves; of the others what waits is asked for once per turn (at most 4 MiB per connection, 256 MiB in all).',
  ],
  measure: measureFlood,
}

async function measureFlood({
  config,
  choice,
  testCase,
  progress,
  startTrial,
}: TrialContext<FanOutConfig>): Promise<Measured> {
  const { payload: payloadBytes, duration, warmup } = config
  const batch = choice.spec.floodBatch ?? config.batch
  const trial = await startTrial({
    isLossless: true,
    ...(config.maxOutbox === undefined ? {} : { maxOutboxBytes: config.maxOutbox }),
  })
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const flood = async (seconds: number, phase: string, firstSeq?: number) =>
    await measureFanOut(
      trial,
      async (server) => await server.publishFlood({ durationMs: seconds * 1_000, payloadBytes, batch }),
      { count: COUNT, durationMs: seconds * 1_000, firstSeq, progress, phase },
    )
  const before = warmup > 0 ? await flood(warmup, 'warming up') : undefined
  const window = await flood(duration, 'publishing', before === undefined ? undefined : before.published.lastSeq + 1)
  const { lostCount, generatorUtilization, counted } = window
  const { duplicateCount, reorderedCount } = counted
  return {
    figures: {
      ...fanOutFigures(window, payloadBytes),
      ...judge({ lostCount, duplicateCount, reorderedCount, generatorUtilization, failure: whyClosed(window) }),
    },
    series: [deliverySeries(window)],
  }
}

/** Test 8: the rate at which one server delivers when it is flooded, and what a delivery costs. */
export const fanOutScenario = createTrialScenario(fanOut)
