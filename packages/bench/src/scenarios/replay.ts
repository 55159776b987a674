import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'
import type { MicrosecondSummary } from '../loadgen/events.js'
import type { ReplayReport } from '../loadgen/plans.js'
import { positiveInteger, positiveNumber } from '../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns, SERVER_COLUMNS } from '../results/columns.js'
import type { LatencyMs } from '../results/result.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { type FanOutWindow, measureFanOut } from '../trials/fan-out.js'
import { median } from '../trials/medians.js'
import { latencyMs, type Trial, usageBetween } from '../trials/trial.js'
import { checkTickSize, counts, type TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface ReplayConfig extends TrialConfig {
  /** In the log. */
  readonly messages: number
  /** Listens that the replaying client sends together; one condition each. */
  readonly listens: readonly number[]
  readonly rate: number
  /** This many windows with a replay, and as many without. */
  readonly windows: number
}

/** Before the number of the listen. */
const LOG_KEY_PREFIX = 'bench.log.'
/** Nobody listens to it. */
const BESIDE_KEY = 'bench.beside'
const BESIDE_INTERVAL_MS = 20
/** Longer than any run, so it covers the whole log. */
const REWIND_MS = 3_600_000
const FILL_PER_SECOND = 20_000
const FILL_TIMEOUT_MS = 60_000
const FILL_POLL_MS = 50
/** Timeout of each read of the replaying client. */
const READ_TIMEOUT_MS = 10_000
const REPLAY_MARGIN_MS = 60_000
/** Overhead per message: key, position and the node's own data, as a generous estimate. */
const BYTES_BESIDE_PAYLOAD = 1_024

const replay: TrialScenario<ReplayConfig> = {
  name: 'replay',
  summary: 'a replay of a long log to one client: its speed, its cost, and its effect on the others',
  examples: [
    ['', '100,000 messages, 200 live messages/s to 100 others'],
    ['--messages 1000000 --tiers 1000', 'a longer log, more connections'],
    ['--messages 20000 --payload 300 --listens 1,5', 'one listen, and five that are resumed together'],
    ["--assert 'addedP99Ms < 5ms'", 'in CI'],
  ],
  abilities: ['fan-out', 'patterns'],
  defaults: { targets: ['webmq-native'], tiers: [100], repeat: 3, duration: 5, payload: 100 },
  caseColumns: [column('messages', 'In the log', 'count'), column('listens', 'Listens', 'count')],
  columns: [
    column('replayedPerSecond', 'Replayed/s', 'rate', 'higher'),
    ...percentileColumns('replayMs', 'whole replay', ['p50', 'max']),
    ...percentileColumns('publishMs', 'publish beside', ['p50', 'max']),
    column('replayCount', 'Replays', 'count'),
    column('pagesPerReplay', 'pages', 'count'),
    ...percentileColumns('quietMs', 'live without', ['p50', 'p99', 'max']),
    ...percentileColumns('latencyMs', 'live beside', ['p50', 'p99', 'max']),
    column('addedP99Ms', 'added p99', 'ms', 'lower'),
    faults('gapCount', 'Missed'),
    faults('disorderCount', 'Twice or out of order'),
    column('emptyRssBytes', 'RSS, log empty', 'bytes', 'lower'),
    column('fullRssBytes', 'full', 'bytes', 'lower'),
    column('serverPeakRssBytes', 'peak while replaying', 'bytes', 'lower'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--messages <n>', 'messages in the log', positiveInteger, 100_000)
      .option(
        '--listens <counts>',
        'listens that share the log and are resumed together, one condition each',
        counts,
        [1],
      )
      .option('--rate <n>', 'live messages per second, to each of the others', positiveNumber, 200)
      .option('--windows <n>', 'windows of each kind: with a replay and without, in turn', positiveInteger, 3)
  },
  readConfig(common, values) {
    checkTickSize(common)
    return {
      ...common,
      messages: Number(values.messages),
      listens: values.listens as readonly number[],
      rate: Number(values.rate),
      windows: Number(values.windows),
    }
  },
  cases: ({ tiers, messages, listens }) =>
    tiers.flatMap((subscribers) =>
      listens.map((count) => ({ mode: 'memory', subscribers, fields: { messages, listens: count } })),
    ),
  notes: ({ rate, duration, windows, payload }) => [
    `The log has messages of ${payload} bytes. One client asks for all of it, page by page, and begins anew as soon as it has it, for ${duration} s; beside it ${rate} messages/s are published to the others, from which latencies are. ${windows} such windows and ${windows} without a replay take turns on one server; percentiles are medians of them, maxima the largest.`,
    `The listens of one client are of different keys, among which the log is divided evenly. Meanwhile it publishes on the same connection, every ${BESIDE_INTERVAL_MS} ms; a publish beside is the time until its ok.`,
    'Replayed/s is of the time from the first listen of a replay to the last message of all; of the server CPU all that was used in the windows with a replay.',
  ],
  measure: measureReplay,
}

async function measureReplay(context: TrialContext<ReplayConfig>): Promise<Measured> {
  const { config, testCase, progress, startTrial } = context
  const { messages, windows, rate, duration, payload } = config
  const listens = Number(testCase.fields.listens)
  const keys = Array.from({ length: listens }, (_, index) => `${LOG_KEY_PREFIX}${index}`)
  const messagesPerKey = Math.ceil(messages / listens)
  // Live messages are logged too.
  const maxMessages = messages + Math.ceil(rate * duration * 2 * windows) + messages
  const trial = await startTrial({
    history: [`#=${maxMessages}`],
    historyMaxMessages: maxMessages,
    historyMaxBytes: maxMessages * (payload + BYTES_BESIDE_PAYLOAD),
  })
  progress.phase('connecting')
  await trial.subscribe(testCase.subscribers)
  const client = trial.addLoadgen()
  await client.ready()
  await trial.target.collect()
  const empty = await trial.mark()
  progress.phase('filling the log')
  await progress.during(fill(trial, keys, messagesPerKey, payload))
  await trial.target.collect()
  const full = await trial.mark()

  const durationMs = duration * 1_000
  const window = async (phase: string) =>
    await measureFanOut(
      trial,
      // The publisher does not wait for the replaying client.
      async () => await trial.publishPaced({ perSecond: rate, durationMs, payloadBytes: payload, isThrottled: false }),
      { count: { latency: true, fanout: false }, durationMs, progress, phase },
    )
  const plan = {
    port: trial.target.port,
    path: '/ws',
    keys,
    first: `rewind=${REWIND_MS}`,
    messages: messagesPerKey,
    publishKey: BESIDE_KEY,
    publishEveryMs: BESIDE_INTERVAL_MS,
    durationMs,
    timeoutMs: READ_TIMEOUT_MS,
  }
  const quiet: FanOutWindow[] = []
  const beside: FanOutWindow[] = []
  const replays: ReplayReport[] = []
  for (let turn = 0; turn < windows; turn++) {
    quiet.push(await window('without a replay'))
    const [one, report] = await Promise.all([
      window('beside a replay'),
      client.replay(plan, durationMs + REPLAY_MARGIN_MS),
    ])
    beside.push(one)
    replays.push(report)
  }
  const total = (of: (report: ReplayReport) => number) => replays.reduce((sum, report) => sum + of(report), 0)
  const seconds = total(({ replayedUs }) => replayedUs) / 1_000_000
  const all = [...quiet, ...beside]
  const quietMs = together(quiet.map(({ counted }) => counted.latencyUs))
  const besideMs = together(beside.map(({ counted }) => counted.latencyUs))
  const replayCount = total((report) => report.replays)
  const gaps = total((report) => report.gaps)
  const gapCount = total(({ misses }) => misses)
  const disorderCount = total(({ disorders }) => disorders)
  const liveLostCount = all.reduce((sum, { lostCount }) => sum + lostCount, 0)
  const generatorUtilization = Math.max(
    ...all.map((one) => one.generatorUtilization),
    // The replaying client is one thread.
    ...replays.map(({ cpuUs, durationUs }) => cpuUs / durationUs),
  )
  return {
    figures: {
      ...usageBetween(full, await trial.mark()),
      serverCpuSeconds: beside.reduce((sum, { usage }) => sum + (usage.serverCpuSeconds ?? 0), 0),
      replayedPerSecond: per(
        total((report) => report.messages),
        seconds,
      ),
      replayMs: latencyMs(replays.at(-1)?.replayUs),
      publishMs: together(replays.map(({ publishUs }) => publishUs)),
      replayCount,
      pagesPerReplay: per(
        total(({ pages }) => pages),
        replayCount,
      ),
      quietMs,
      latencyMs: besideMs,
      addedP99Ms: Math.max(0, (besideMs.p99 ?? 0) - (quietMs.p99 ?? 0)),
      gapCount,
      disorderCount,
      emptyRssBytes: empty.server.rssBytes,
      fullRssBytes: full.server.rssBytes,
      generatorUtilization,
      ...judge({
        lostCount: gapCount + liveLostCount,
        reorderedCount: disorderCount,
        failure:
          gaps > 0
            ? `${gaps} pages told of a gap`
            : (all.find(({ closedReason }) => closedReason !== null)?.closedReason ?? null),
        generatorUtilization,
        serverLate:
          all
            .map(({ published, counted }) => trial.lateness(published, counted, Math.round(rate * duration)).serverLate)
            .find((reason) => reason !== null) ?? null,
      }),
    },
  }
}

/**
 * Publishes the messages to replay: a client for each key, all at once. Resolves when the server has accepted all of them.
 * @throws {RunError} when it does not.
 */
async function fill(trial: Trial, keys: readonly string[], messagesPerKey: number, payload: number): Promise<void> {
  const publishers = await Promise.all(
    keys.map(async (key) => {
      const publisher = trial.addLoadgen()
      await publisher.ready()
      await trial.tryConnect({ count: 1 }, { loadgen: publisher })
      return { key, publisher }
    }),
  )
  const messages = keys.length * messagesPerKey
  const durationMs = Math.ceil((messages / FILL_PER_SECOND) * 1_000)
  // The generator rounds up.
  const perSecond = (messagesPerKey - 0.5) / (durationMs / 1_000)
  const text = '{"ts":$TS_US,"content":"message $SEQ of user 1"}'
  const body = text.replace('}', `,"pad":"${'x'.repeat(Math.max(0, payload - text.length))}"}`)
  const { receivedCount: before } = await trial.target.sample()
  await Promise.all(
    publishers.map(({ key, publisher }) =>
      publisher.floodIn({ durationMs, frame: `publish - ${key}\n${body}`, mode: 'paced', perSecond }),
    ),
  )
  const deadline = performance.now() + FILL_TIMEOUT_MS
  for (;;) {
    const { receivedCount } = await trial.target.sample()
    if (receivedCount - before >= messages) return
    if (performance.now() > deadline) {
      throw new RunError(`the server took ${receivedCount - before} of ${messages} messages`)
    }
    await sleep(FILL_POLL_MS)
  }
}

/** One distribution for several windows of the same kind. */
function together(windows: readonly (MicrosecondSummary | null | undefined)[]): LatencyMs {
  const each = windows.map(latencyMs).filter((one) => one !== null)
  const middle = (of: 'p50' | 'p95' | 'p99') => median(each.map((one) => one[of]).filter((value) => value !== null))
  const maxima = each.map(({ max }) => max).filter((value) => value !== null)
  return {
    p50: middle('p50'),
    p95: middle('p95'),
    p99: middle('p99'),
    max: maxima.length === 0 ? null : Math.max(...maxima),
  }
}

/** The cost of a long replay to the server and the others. */
export const replayScenario = createTrialScenario(replay)
