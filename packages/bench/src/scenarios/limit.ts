import { setTimeout as sleep } from 'node:timers/promises'
import { RunError } from '../exit-codes.js'
import { nonNegativeNumber, positiveInteger } from '../options.js'
import { column, VERDICT_COLUMN } from '../results/columns.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { searchLimit } from '../trials/search-limit.js'
import { reasons, type UsageMark } from '../trials/trial.js'
import type { TrialConfig } from '../trials/trial-options.js'
import { type Measured, per, type TrialContext, type TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface LimitConfig extends TrialConfig {
  /** The search ends here. */
  readonly max: number
  /** Server processes that the connections are spread over. */
  readonly backends: number
  /** Seconds that connections must last. */
  readonly hold: number
}

interface Attempt {
  readonly connections: number
  readonly connectsPerSecond: number | null
  readonly bytesPerConnection: number | null
  /** Of all server processes. */
  readonly serverRssBytes: number | null
  /** `null`: every single connection lasted and answered. */
  readonly failure: string | null
}

/** Precision of the search, as a share of the limit. */
const PRECISION_RATIO = 0.02
const CONNECT_TIMEOUT_MS = 20_000

const limit: TrialScenario<LimitConfig> = {
  name: 'limit',
  summary: 'the most connections that last: doubles until some fail, then bisects',
  examples: [
    ['', 'one server process, from 1,000 connections on'],
    ['--backends 3 --max 60000', 'several server processes'],
    ["--assert 'webmq-native maxConnections >= 40000'", 'in CI'],
  ],
  abilities: ['ping'],
  defaults: { targets: ['webmq-native'], tiers: [1_000], repeat: 1 },
  caseColumns: [],
  columns: [
    column('maxConnections', 'Most', 'count', 'higher'),
    column('connectsPerSecond', 'Connects/s', 'rate', 'higher'),
    column('bytesPerConnection', 'RSS each', 'bytes', 'lower'),
    column('serverRssBytes', 'Server RSS', 'bytes', 'lower'),
    column('limitReason', 'Why no more', 'text'),
    VERDICT_COLUMN,
  ],
  addOptions(command) {
    command
      .option('--max <n>', 'the largest number to try', positiveInteger, 100_000)
      .option('--backends <n>', 'server processes for the connections', positiveInteger, 1)
      .option('--hold <s>', 'seconds that connections must last', nonNegativeNumber, 2)
  },
  readConfig: (common, { max, backends, hold }) => ({ ...common, max, backends, hold }),
  cases: ({ tiers }) => tiers.map((subscribers) => ({ mode: 'probe', subscribers, fields: {} })),
  notes: ({ max, backends, hold }) => [
    `"Connections" is where the probing starts; it ends at ${max.toLocaleString('en')}. Connections are stable when all are open after ${hold} s and answer a ping. Server processes: ${backends}.`,
  ],
  measure: measureLimit,
}

async function measureLimit(context: TrialContext<LimitConfig>): Promise<Measured> {
  const { config, choice, testCase, progress } = context
  const attempts: Attempt[] = []
  const found = await searchLimit(
    { start: testCase.subscribers, max: config.max, precisionRatio: PRECISION_RATIO },
    async (connections) => {
      const attempt = await attemptConnections(context, connections)
      attempts.push(attempt)
      const outcome = attempt.failure ?? `${Math.round(attempt.connectsPerSecond ?? 0).toLocaleString('en')} connects/s`
      progress.note(`  ${choice.label}: ${connections.toLocaleString('en')}: ${outcome}`)
      return attempt.failure === null
    },
  )
  const best = attempts.findLast(({ connections, failure }) => failure === null && connections === found)
  const limitReason = attempts.findLast(({ failure }) => failure !== null)?.failure ?? 'no more were tried'
  return {
    figures: {
      maxConnections: found,
      connectsPerSecond: best?.connectsPerSecond ?? null,
      bytesPerConnection: best?.bytesPerConnection ?? null,
      serverRssBytes: best?.serverRssBytes ?? null,
      limitReason,
      attempts,
      ...judge({ failure: found === 0 ? `not even ${testCase.subscribers} connections: ${limitReason}` : null }),
    },
  }
}

async function attemptConnections(
  { config, choice, progress, signal, startTrial }: TrialContext<LimitConfig>,
  connections: number,
): Promise<Attempt> {
  const trials = await Promise.all(Array.from({ length: config.backends }, () => startTrial({}, true)))
  const share = (index: number) => Math.floor((connections + index) / config.backends)
  try {
    progress.phase(`trying ${connections.toLocaleString('en')}`)
    const marks = await Promise.all(trials.map((trial) => trial.mark()))
    const connected = await Promise.all(
      trials.map((trial, index) => trial.tryConnect({ count: share(index), timeoutMs: CONNECT_TIMEOUT_MS })),
    )
    const failed = connected.find((one) => one.failed > 0)
    const ok = connected.reduce((sum, one) => sum + one.ok, 0)
    const connectsPerSecond = per(ok, Math.max(...connected.map(({ durationUs }) => durationUs)) / 1_000_000)
    if (failed !== undefined) {
      return {
        connections,
        connectsPerSecond,
        bytesPerConnection: null,
        serverRssBytes: null,
        failure: `${failed.failed} failed: ${reasons(failed)}`,
      }
    }
    await sleep(config.hold * 1_000, undefined, { signal })
    const { text, await: awaited } = choice.spec.wire.ping
    const pinged = await Promise.all(
      trials.map((trial) => trial.loadgen.ping({ perConnection: 1, kind: 'app', text, await: awaited })),
    )
    const missing = pinged.reduce((sum, one) => sum + one.missing, 0)
    const usages = await Promise.all(trials.map((trial) => trial.mark()))
    const rssBytes = (all: readonly UsageMark[]) => all.reduce((sum, { server }) => sum + server.rssBytes, 0)
    return {
      connections,
      connectsPerSecond,
      bytesPerConnection: (rssBytes(usages) - rssBytes(marks)) / connections,
      serverRssBytes: rssBytes(usages),
      failure: missing > 0 ? `${missing} did not answer after ${config.hold} s` : null,
    }
  } catch (error) {
    // A server that dies under the load is an answer, too.
    if (!(error instanceof RunError)) throw error
    return {
      connections,
      connectsPerSecond: null,
      bytesPerConnection: null,
      serverRssBytes: null,
      failure: error.message,
    }
  } finally {
    await Promise.all(trials.map((trial) => trial.stop()))
  }
}

/** WSE's test 7: the most connections. */
export const limitScenario = createTrialScenario(limit)
