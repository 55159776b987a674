import { type Command, InvalidArgumentError } from 'commander'
import { BROKER_KINDS, type BrokerKind } from '../brokers/broker-choice.js'
import { UsageError } from '../exit-codes.js'
import { positiveInteger } from '../options.js'
import {
  column,
  DELIVERY_COLUMNS,
  DELIVERY_COST_COLUMN,
  faults,
  JUDGEMENT_COLUMNS,
  LOSS_COLUMNS,
  RELAY_COLUMNS,
  SERVER_COLUMNS,
} from '../results/columns.js'
import type { Published, TargetSettings } from '../targets/messages.js'
import type { TargetChoice } from '../targets/target-table.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { type FanOutWindow, fanOutFigures, measureFanOut, seriesOf } from '../trials/fan-out.js'
import type { RelayBrokerKind } from '../trials/relay.js'
import { checkTickSize, names, type TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface FanOutConfig extends TrialConfig {
  readonly modes: readonly BrokerKind[]
  /** Messages per turn of the publisher's event loop. */
  readonly batch: number
  /** WebMQ's limit of pending bytes per connection; absent: its default. */
  readonly maxOutbox?: number
  /** Messages under way between two nodes. */
  readonly inFlight: number
}

const FLOOD_NOTE =
  'Nothing may be lost: the publisher waits while too much waits in the server. webmq-native and raw say so themselves; of the others what waits is asked for once per turn (at most 4 MiB per connection, 256 MiB in all).'
const RELAY_NOTES = [
  'Two nodes: A publishes in its own process, B has the connections. B tells A how many messages have left it, and A keeps at most --in-flight under way: brokers do not tell a publisher that a consumer is behind.',
  'Deliveries/CPU s is of both nodes, "with broker" of nodes and broker.',
]
const RELAYS = BROKER_KINDS.filter((kind) => kind !== 'memory')

/** A flood counts losses at its end; recording latency and the fan-out of each message would only cost CPU. */
const COUNT = { latency: false, fanout: false } as const
/** WebMQ's default limit of pending bytes per connection. */
const DEFAULT_MAX_OUTBOX_BYTES = 1024 * 1024
/** A frame's header and the protocol's: key and position. */
const MAX_FRAME_OVERHEAD_BYTES = 64

const fanOut: TrialScenario<FanOutConfig> = {
  name: 'fanout',
  summary: 'one publisher at full speed; every connection gets every message',
  examples: [
    ['--tiers 10,100,1000', 'three tiers'],
    ['--target webmq-native,uws,raw --tiers 100,1000,5000 --repeat 5', 'beside uWebSockets.js and the physical limit'],
    ['--target webmq-native:1,webmq-native:2 --tiers 1000', 'one I/O thread against two'],
    ['--tls --target webmq-native,uws,ws --tiers 100,1000', 'with TLS'],
    ['--mode redis,mesh,rabbitmq,nats --tiers 10,100,1000', 'from one node to the connections of another'],
    ["--assert gapCount=0 --assert 'webmq-native/uws deliveriesPerServerCpuSecond >= 5'", 'in CI'],
  ],
  abilities: ['fan-out'],
  defaults: {
    hasTls: true,
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
    ...RELAY_COLUMNS,
    ...LOSS_COLUMNS,
    faults('closedCount', 'Closed'),
    ...SERVER_COLUMNS,
    column('serverPeakRssBytes', 'Server peak RSS', 'bytes', 'lower'),
    { ...column('wireBytesPerDelivery', 'Bytes on the wire each', 'number', 'lower'), unit: 'B' },
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command: Command) {
    command
      .option(
        '--mode <names>',
        `memory: one server. ${RELAYS.join(', ')}: published on one node, delivered by another (webmq targets only)`,
        modes,
        ['memory'],
      )
      .option('--batch <n>', "messages per turn of the publisher's event loop", positiveInteger, 64)
      .option(
        '--max-outbox <bytes>',
        "WebMQ's limit of pending bytes per connection (default: its own)",
        positiveInteger,
      )
      .option(
        '--in-flight <n>',
        'messages under way between two nodes (default: as many as may wait for a connection)',
        positiveInteger,
      )
  },
  readConfig(common, { mode, batch, maxOutbox, inFlight }) {
    checkTickSize(common)
    const isPossible = mode.some((one: BrokerKind) => common.targets.some((choice) => canMeasure(one, choice)))
    if (!isPossible) throw new UsageError(`--mode ${mode.join(',')} is for targets of webmq`)
    // Messages under way never exceed the pending limit of a connection, so no connection is closed as too slow.
    const fitting = Math.floor((maxOutbox ?? DEFAULT_MAX_OUTBOX_BYTES) / (common.payload + MAX_FRAME_OVERHEAD_BYTES))
    const isRelayed = mode.some((one: BrokerKind) => one !== 'memory')
    return {
      ...common,
      modes: mode,
      batch,
      ...(maxOutbox === undefined ? {} : { maxOutbox }),
      inFlight: isRelayed ? Math.max(batch, inFlight ?? fitting) : 0,
    }
  },
  cases: ({ tiers, modes }) => tiers.flatMap((subscribers) => modes.map((mode) => ({ mode, subscribers, fields: {} }))),
  isMeasured: ({ mode }, choice) => canMeasure(mode, choice),
  notes: ({ modes }) => [
    'No latency: the publisher does not wait for readers, so a message’s time would be that of the queue before it.',
    ...(modes.includes('memory') ? [FLOOD_NOTE] : []),
    ...(modes.some((mode) => mode !== 'memory') ? RELAY_NOTES : []),
  ],
  async measure(context) {
    return context.testCase.mode === 'memory' ? await measureFlood(context) : await measureRelay(context)
  },
}

/** Measures one window, the same way for every publisher. */
type Flood = (seconds: number, phase: string, before?: Published) => Promise<FanOutWindow>

async function measureFlood({
  config,
  choice,
  testCase,
  progress,
  startTrial,
}: TrialContext<FanOutConfig>): Promise<Measured> {
  const { payload: payloadBytes } = config
  const batch = choice.spec.floodBatch ?? config.batch
  const trial = await startTrial({ isLossless: true, ...outboxOf(config) })
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const window = await afterWarmup(config, async (seconds, phase, before) => {
    const durationMs = seconds * 1_000
    const publish = async () => await trial.target.publishFlood({ durationMs, payloadBytes, batch })
    return await measureFanOut(trial, publish, { count: COUNT, durationMs, before, progress, phase })
  })
  return {
    figures: { ...fanOutFigures(window, payloadBytes), ...judgeFlood(window) },
    series: seriesOf(window),
  }
}

async function measureRelay({ config, testCase, progress, startRelay }: TrialContext<FanOutConfig>): Promise<Measured> {
  const { payload: payloadBytes, batch, inFlight: maxInFlight } = config
  const { mode, subscribers } = testCase
  const relay = await startRelay(mode as RelayBrokerKind, { ...outboxOf(config), toldPayloadBytes: payloadBytes })
  progress.phase('connecting')
  await relay.subscribe(subscribers)
  const window = await afterWarmup(config, async (seconds, phase, before) => {
    const durationMs = seconds * 1_000
    const publish = async () => await relay.publisher.publishRelayed({ durationMs, payloadBytes, batch, maxInFlight })
    return await measureFanOut(relay, publish, { count: COUNT, durationMs, before, progress, phase })
  })
  const { counted, usage } = window
  return {
    figures: {
      ...fanOutFigures(window, payloadBytes),
      deliveriesPerTotalCpuSecond: per(counted.frames, (usage.serverCpuSeconds ?? 0) + (usage.brokerCpuSeconds ?? 0)),
      ...judgeFlood(window),
    },
    series: seriesOf(window),
  }
}

async function afterWarmup({ warmup, duration }: FanOutConfig, flood: Flood): Promise<FanOutWindow> {
  const before = warmup > 0 ? await flood(warmup, 'warming up') : undefined
  return await flood(duration, 'publishing', before?.published)
}

function judgeFlood(window: FanOutWindow) {
  const { lostCount, generatorUtilization, counted } = window
  const { duplicateCount, reorderedCount } = counted
  return {
    closedCount: window.closedCount,
    ...judge({ lostCount, duplicateCount, reorderedCount, generatorUtilization, failure: window.closedReason }),
  }
}

function outboxOf({ maxOutbox }: FanOutConfig): TargetSettings {
  return maxOutbox === undefined ? {} : { maxOutboxBytes: maxOutbox }
}

function canMeasure(mode: string, { spec }: TargetChoice): boolean {
  return mode === 'memory' || spec.abilities.includes('many-nodes')
}

/** Reads `redis,mesh`. */
function modes(text: string): BrokerKind[] {
  const given = names(text)
  return given.map((name, index) => {
    const kind = BROKER_KINDS.find((known) => known === name)
    if (kind === undefined) throw new InvalidArgumentError(`Allowed are ${BROKER_KINDS.join(', ')}.`)
    if (given.indexOf(name) !== index) throw new InvalidArgumentError(`It names ${name} twice.`)
    return kind
  })
}

/**
 * WSE's tests 8, 10 and 11: the delivery rate of one flooded server, published by itself or by another node, and the
 * cost of a delivery.
 */
export const fanOutScenario = createTrialScenario(fanOut)
