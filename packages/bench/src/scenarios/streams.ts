import { positiveInteger, positiveNumber } from '../options.js'
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
import type { TargetChoice } from '../targets/target-table.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { fanOutFigures, measureFanOut, seriesOf } from '../trials/fan-out.js'
import { latencyMs } from '../trials/trial.js'
import { checkTickSize, type TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface StreamsConfig extends TrialConfig {
  readonly streams: number
  /** Appends per second to each stream. */
  readonly rate: number
}

/** `streams`: appends of streams; `messages`: the same bytes as messages of their own. */
const MODES = ['streams', 'messages'] as const

const streams: TrialScenario<StreamsConfig> = {
  name: 'streams',
  summary:
    'many texts that are being written at once, each with its readers: what an append costs, and when readers have it',
  examples: [
    ['--tiers 1000', '1,000 readers of 100 streams, 50 appends/s each'],
    ['--tiers 10000 --streams 100 --rate 50', '500,000 appends to readers per second'],
  ],
  abilities: ['rooms'],
  defaults: {
    targets: ['webmq-native', 'socketio'],
    tiers: [1_000],
    duration: 10,
    warmup: 1,
    payload: 100,
  },
  tiersHelp: 'readers of all streams together',
  caseColumns: [],
  columns: [
    ...DELIVERY_COLUMNS,
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
    column('serverCpuShare', 'Server CPU cores', 'number', 'lower'),
    DELIVERY_COST_COLUMN,
    ...LOSS_COLUMNS,
    faults('reorderedCount', 'Out of order'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--streams <n>', 'streams that are written at once', positiveInteger, 100)
      .option('--rate <n>', 'appends per second to each stream', positiveNumber, 50)
  },
  readConfig(common, { streams, rate }) {
    checkTickSize(common)
    return { ...common, streams, rate }
  },
  cases: ({ tiers }) => tiers.flatMap((subscribers) => MODES.map((mode) => ({ mode, subscribers, fields: {} }))),
  isMeasured: ({ mode }, choice) => mode === 'messages' || hasStreams(choice),
  notes: () => [
    'Latency is receipt less the intended moment of the append, per reader. The process of the server writes, as the worker of an application does.',
    'socketio: a room for each stream, with its recovery switched on.',
  ],
  measure,
}

function hasStreams({ spec }: TargetChoice): boolean {
  return spec.program === 'webmq.mjs'
}

async function measure({
  config,
  choice,
  testCase,
  progress,
  startTrial,
}: TrialContext<StreamsConfig>): Promise<Measured> {
  const { payload: payloadBytes, duration, warmup, streams: keyCount, rate: perSecond } = config
  const { subscribers, mode } = testCase
  const { room } = choice.spec.wire
  if (room === undefined) throw new Error(`${choice.label} has no rooms`)
  const trial = await startTrial({ isLossless: true, recovery: true })
  progress.phase('connecting')
  const counts = Array.from({ length: keyCount }, (_, index) => ({
    count: Math.floor(subscribers / keyCount) + (index < subscribers % keyCount ? 1 : 0),
  }))
  await trial.subscribe(subscribers, { groups: counts.filter(({ count }) => count > 0) }, undefined, room)
  const load = async (seconds: number, phase: string, before?: Published) => {
    const durationMs = seconds * 1_000
    const publish = async () =>
      await trial.publishPaced({ perSecond, durationMs, payloadBytes, keyCount, isStream: mode === 'streams' })
    return await measureFanOut(trial, publish, { count: { latency: true }, durationMs, before, progress, phase })
  }
  const before = warmup * perSecond >= 1 ? await load(warmup, 'warming up') : undefined
  const window = await load(duration, 'appending', before?.published)
  const { counted, published, usage, lostCount, generatorUtilization, closedReason } = window
  const { duplicateCount, reorderedCount } = counted
  return {
    figures: {
      ...fanOutFigures(window, payloadBytes),
      latencyMs: latencyMs(counted.latencyUs),
      serverCpuShare: per(usage.serverCpuSeconds, Math.max(duration, published.drainedUs / 1_000_000)),
      ...judge({
        lostCount,
        duplicateCount,
        reorderedCount,
        generatorUtilization,
        failure: closedReason,
        ...trial.lateness(published, counted, Math.round(perSecond * duration)),
      }),
    },
    series: seriesOf(window),
  }
}

/** Streams beside messages, and beside the rooms of others. */
export const streamsScenario = createTrialScenario(streams)
