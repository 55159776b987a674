import { randomBytes } from 'node:crypto'
import { RunError } from '../exit-codes.js'
import { nowUs } from '../measure/clock.js'
import { positiveInteger, positiveNumber } from '../options.js'
import { column, faults, JUDGEMENT_COLUMNS, percentileColumns, SERVER_COLUMNS } from '../results/columns.js'
import { signToken } from '../targets/json-web-token.js'
import type { Published } from '../targets/messages.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { generatorShare, latencyMs, type Trial, usageBetween } from '../trials/trial.js'
import { checkTickSize, type TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface RestartConfig extends TrialConfig {
  readonly others: number
  /** Messages per second to each of the others. */
  readonly rate: number
  /** Handshakes in flight. */
  readonly batch: number
}

/** Where the clients of the killed node go. */
const PLACES = ['the same node', 'another node'] as const
const SECRET_BYTES = 32
/** One address has 28,000 ports for all of its connections, and the search for a free one takes long from the half on. */
const SOURCE_ADDRESSES = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4']
/** A window of the others ends with one of these. */
const PUBLISH_MS = 500
const QUIET_MS = 3_000
const TAIL_TIMEOUT_MS = 60_000

/** A node is killed with all its clients, who come back with their tokens: how long that takes, and what others notice. */
export const restartScenario = createTrialScenario<RestartConfig>({
  name: 'restart',
  summary:
    'a node is killed, and its clients come back with a token each: to it once it runs again, or to another node',
  examples: [
    ['', '18,000 clients, beside 100 others of another node'],
    ['--tiers 1000,18000 --repeat 5', 'fewer clients too'],
  ],
  abilities: ['tokens', 'fan-out'],
  defaults: { targets: ['webmq-native'], tiers: [18_000], payload: 100 },
  tiersHelp: 'clients of the killed node, one condition each',
  caseColumns: [],
  columns: [
    column('backMs', 'All back after', 'ms', 'lower'),
    column('connectsPerSecond', 'Connects/s', 'rate', 'higher'),
    column('connectsPerServerCpuSecond', 'Connects/CPU s', 'rate', 'higher'),
    ...percentileColumns('quietMs', 'others before', ['p50', 'p99']),
    ...percentileColumns('latencyMs', 'others meanwhile', ['p50', 'p99', 'max']),
    faults('gapCount', 'Lost by others'),
    faults('failedCount', 'Failed'),
    ...SERVER_COLUMNS,
    ...JUDGEMENT_COLUMNS,
  ],
  addOptions(command) {
    command
      .option('--others <n>', 'connections of another node, which listen', positiveInteger, 100)
      .option('--rate <n>', 'messages per second to each of the others', positiveNumber, 100)
      .option('--batch <n>', 'connections that come back at once', positiveInteger, 500)
  },
  readConfig(common, { others, rate, batch }) {
    checkTickSize(common)
    return { ...common, others, rate, batch }
  },
  cases: ({ tiers }) =>
    tiers.flatMap((subscribers) => PLACES.map((mode) => ({ mode: `to ${mode}`, subscribers, fields: {} }))),
  notes: () => [
    'Time counts from the SIGKILL; a node that starts again has verified no token yet, and compiled nothing. Clients do not wait before they come back.',
    'The others are at the other node all the time; server figures are of the node that the clients come back to.',
  ],
  measure: measureRestart,
})

async function measureRestart(context: TrialContext<RestartConfig>): Promise<Measured> {
  const { config, testCase, progress, startTrial } = context
  const jwtSecret = randomBytes(SECRET_BYTES).toString('base64')
  const nowS = Math.floor(Date.now() / 1_000)
  const tokensFor = (group: string, count: number) =>
    Array.from({ length: count }, (_, number) => signToken(jwtSecret, `${group}-${number}`, nowS))
  const others = await startTrial({ jwtSecret, isLossless: true })
  const killed = await startTrial({ jwtSecret }, true)
  const more = others.addLoadgen()
  await more.ready()
  progress.phase('connecting')
  await others.subscribe(config.others, { tokens: tokensFor('other', config.others) })
  const count = testCase.subscribers
  const clients = { count, tokens: tokensFor('user', count), batch: config.batch, sourceAddresses: SOURCE_ADDRESSES }
  const first = await killed.tryConnect(clients)
  if (first.failed > 0) throw new RunError(`${first.failed} of ${count} connections failed: ${killed.reasons(first)}`)

  progress.phase('quiet')
  const quiet = await whilePublishing(others, config, async () => undefined)
  progress.phase('coming back')
  const comeBack = async () => {
    const killedUs = nowUs()
    process.kill(killed.target.pid, 'SIGKILL')
    const taker = testCase.mode === `to ${PLACES[0]}` ? await startTrial({ jwtSecret }) : others
    const loadgen = taker === others ? more : taker.loadgen
    const [start, idle] = [await taker.mark(), await loadgen.stats()]
    const connected = await taker.tryConnect(clients, { loadgen })
    const backMs = (nowUs() - killedUs) / 1_000
    const [end, busy] = [await taker.mark(), await loadgen.stats()]
    const generatorCpuUs = busy.cpuUserUs + busy.cpuSystemUs - idle.cpuUserUs - idle.cpuSystemUs
    const usage = { ...usageBetween(start, end), generatorCpuSeconds: generatorCpuUs / 1_000_000 }
    return { connected, backMs, usage, why: taker.reasons(connected) }
  }
  const { result, counted } = await whilePublishing(others, config, async () => await progress.during(comeBack()))
  const { connected, backMs, usage, why } = result
  const seconds = connected.durationUs / 1_000_000
  const generatorUtilization = generatorShare(usage.generatorCpuSeconds, seconds, config.generatorThreads)
  const lostCount = counted.gapCount + counted.missingCount
  return {
    figures: {
      ...usage,
      backMs,
      connectsPerSecond: per(connected.ok, seconds),
      connectsPerServerCpuSecond: per(connected.ok, usage.serverCpuSeconds),
      quietMs: latencyMs(quiet.counted.latencyUs),
      latencyMs: latencyMs(counted.latencyUs),
      gapCount: lostCount,
      failedCount: connected.failed,
      generatorUtilization,
      ...judge({
        lostCount,
        failure: connected.failed > 0 ? `${connected.failed} did not come back: ${why}` : null,
        generatorUtilization,
      }),
    },
  }
}

/** Publishes to the others until the work is done, for a moment at least, and counts what they get. */
async function whilePublishing<T>(
  trial: Trial,
  { rate: perSecond, payload: payloadBytes }: RestartConfig,
  work: () => Promise<T>,
) {
  await trial.loadgen.startCounting({ latency: true })
  const running = work()
  let isOver = false
  const end = () => {
    isOver = true
  }
  running.then(end, end)
  let published: Published
  // Connections that do not listen come meanwhile, so the deliveries do not say what waits in the server.
  const offered = { perSecond, durationMs: PUBLISH_MS, payloadBytes, isThrottled: false }
  do published = await trial.publishPaced(offered)
  while (!isOver)
  const result = await running
  const { lastSeq } = published
  const counted = await trial.loadgen.stopCounting({ lastSeq, quietMs: QUIET_MS, timeoutMs: TAIL_TIMEOUT_MS })
  return { result, counted }
}
