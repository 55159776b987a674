import { UsageError } from '../../exit-codes.js'
import { nowUs } from '../../measure/clock.js'
import {
  column,
  DELIVERY_COLUMNS,
  faults,
  JUDGEMENT_COLUMNS,
  LOSS_COLUMNS,
  percentileColumns,
} from '../../results/columns.js'
import { latencyMs } from '../../trials/trial.js'
import { checkTickSize, positiveNumbers } from '../../trials/trial-options.js'
import { type Measured, per } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import {
  connect,
  createDeploymentScenario,
  type DeploymentConfig,
  type DeploymentContext,
  type DeploymentScenario,
  startLoadgen,
  tlsNotes,
  whyClosed,
} from './create-deployment-scenario.js'

interface PacedConfig extends DeploymentConfig {
  /** Messages per second. */
  readonly rates: readonly number[]
}

/** A window without its last message ends when nothing has come for this long. */
const QUIET_MS = 3_000
const TAIL_TIMEOUT_MS = 30_000
const MAX_LATE_MS = 100
/** A typical number of a message. */
const SEQUENCE_DIGITS = 4

const paced: DeploymentScenario<PacedConfig> = {
  name: 'paced',
  summary: 'one client publishes at a fixed rate to all others: latency, loss, order',
  examples: [
    ['--url wss://rt.example.com/ws --token eyJ…', '100 connections, 10 messages/s'],
    ['--url ws://127.0.0.1:8080 --tiers 10,100,500 --rate 5,20', 'three sizes at two rates'],
    ["--url wss://rt.example.com/ws --assert gapCount=0 --assert 'latencyMs.p99 < 50ms'", 'in CI'],
  ],
  defaults: { tiers: [100], duration: 10, warmup: 1, payload: 100 },
  caseColumns: [column('ratePerSecond', 'Offered/s', 'rate')],
  columns: [
    ...DELIVERY_COLUMNS,
    ...percentileColumns('latencyMs', '', ['p50', 'p95', 'p99', 'max']),
    ...percentileColumns('fanoutMs', 'all', ['p50', 'p95', 'p99']),
    column('publishLateMs.p99', 'Publisher late p99', 'ms', 'lower'),
    ...LOSS_COLUMNS,
    faults('reorderedCount', 'Out of order'),
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command.option('--rate <list>', 'messages per second, one condition each', positiveNumbers, [10])
  },
  readConfig(common, values) {
    checkTickSize(common)
    const rates = values.rate as number[]
    const tooFew = rates.find((rate) => rate * common.duration < 1)
    if (tooFew !== undefined)
      throw new UsageError(`--rate ${tooFew} publishes nothing in --duration ${common.duration}`)
    return { ...common, rates }
  },
  loadOf({ tiers, rates, payload }) {
    const [connections, perSecond] = [Math.max(...tiers), Math.max(...rates)]
    return {
      connections,
      publishesPerSecond: perSecond,
      deliveriesPerSecond: connections * perSecond,
      deliveredBytesPerSecond: connections * perSecond * payload,
    }
  },
  cases: ({ tiers, rates }) =>
    tiers.flatMap((subscribers) =>
      rates.map((ratePerSecond) => ({ mode: 'deployment', subscribers, fields: { ratePerSecond } })),
    ),
  notes: () => [
    'Latency is receipt less the intended moment of publishing, on one clock: publisher, network, server, network. "all" is that of the last receiver of each message.',
  ],
  measure: measurePaced,
}

async function measurePaced(context: DeploymentContext<PacedConfig>): Promise<Measured> {
  const { config, deployment, progress, testCase } = context
  const perSecond = Number(testCase.fields.ratePerSecond)
  const key = `${deployment.keyPrefix}.tick`
  progress.phase('connecting')
  const [listeners, publisher] = await Promise.all([startLoadgen(context), startLoadgen(context)])
  const connected = await progress.during(connect(listeners, testCase.subscribers, context))
  await connect(publisher, 1, context)
  const { failed } = await listeners.send([`listen 1 ${key}`], 'ok 1')
  const frame = `publish - ${key}\n${tick(config.payload)}`

  const load = async (seconds: number, phase: string) => {
    progress.phase(phase)
    await listeners.startCounting({ latency: true, fanout: true, firstSeq: 1 })
    const durationMs = seconds * 1_000
    const flood = publisher.floodIn({ durationMs, frame, connections: 1, mode: 'paced', perSecond })
    const sent = await progress.during(flood, { expectedMs: durationMs })
    const counted = await listeners.stopCounting({
      lastSeq: sent.writtenFrames,
      quietMs: QUIET_MS,
      timeoutMs: TAIL_TIMEOUT_MS,
    })
    return { sent, counted }
  }
  if (config.warmup * perSecond >= 1) await load(config.warmup, 'warming up')
  const { sent, counted } = await load(config.duration, 'publishing')
  const closed = whyClosed(await listeners.stats(), deployment) ?? whyClosed(await publisher.stats(), deployment)
  const seconds = (counted.lastFrameUs - counted.firstFrameUs) / 1_000_000
  const deliveriesPerSecond = per(counted.frames, seconds)
  const lostCount = counted.gapCount + counted.missingCount
  const { duplicateCount, reorderedCount, busiestThreadShare: generatorUtilization } = counted
  const lateMs = latencyMs(sent.lateUs)
  return {
    figures: {
      publishedPerSecond: per(sent.writtenFrames, sent.durationUs / 1_000_000),
      deliveriesPerSecond,
      bytesPerSecond: deliveriesPerSecond === null ? null : deliveriesPerSecond * config.payload,
      latencyMs: latencyMs(counted.latencyUs),
      fanoutMs: latencyMs(counted.completeFanoutUs),
      publishLateMs: lateMs,
      gapCount: lostCount,
      duplicateCount,
      reorderedCount,
      generatorCpuSeconds: (counted.cpuUserUs + counted.cpuSystemUs + sent.cpuUserUs + sent.cpuSystemUs) / 1_000_000,
      generatorUtilization,
      ...judge({
        lostCount,
        duplicateCount,
        reorderedCount,
        generatorUtilization,
        failure: failed > 0 ? `${failed} connections got no answer to listen` : closed,
        generatorLate: (lateMs?.p99 ?? 0) > MAX_LATE_MS ? 'messages were sent late' : null,
      }),
    },
    notes: tlsNotes(connected),
  }
}

/** A message with the places that the load generator fills; about `bytes` long. */
function tick(bytes: number): string {
  const bare = '{"t":"tick","p":{"seq":,"ts_us":},"pad":""}'.length + SEQUENCE_DIGITS + `${Math.trunc(nowUs())}`.length
  return `{"t":"tick","p":{"seq":$SEQ,"ts_us":$TS_US},"pad":"${'x'.repeat(Math.max(0, bytes - bare))}"}`
}

/** Latency of a server that runs already, at a fixed rate. */
export const pacedDeployment = createDeploymentScenario(paced)
