import { createRandom } from '../src/load/random.js'
import type { ResultColumn, ResultRecord, ResultRow, ResultSeries } from '../src/results/result.js'

/** What a target of the fixture is like: deliveries per CPU second with 100 subscribers, milliseconds at p50. */
interface FixtureTarget {
  readonly name: string
  readonly perCpuSecond: number
  readonly p50: number
}

const TARGETS: readonly FixtureTarget[] = [
  { name: 'raw', perCpuSecond: 95e6, p50: 0.3 },
  { name: 'webmq-native', perCpuSecond: 62e6, p50: 0.35 },
  { name: 'webmq-uws', perCpuSecond: 6.1e6, p50: 0.6 },
  { name: 'uws', perCpuSecond: 7.4e6, p50: 0.55 },
  { name: 'ws', perCpuSecond: 0.18e6, p50: 2.4 },
  { name: 'socketio', perCpuSecond: 0.11e6, p50: 3.1 },
]
const TIERS = [10, 100, 500, 1_000, 2_000, 5_000]
const REPEATS = 5
const MIB = 1_048_576

const COLUMNS: readonly ResultColumn[] = [
  { key: 'target', title: 'Target', unit: '', format: 'text' },
  { key: 'mode', title: 'Mode', unit: '', format: 'text' },
  { key: 'subscribers', title: 'Connections', unit: '', format: 'count' },
  { key: 'publishedPerSecond', title: 'Published/s', unit: '1/s', format: 'rate', better: 'higher' },
  { key: 'deliveriesPerSecond', title: 'Deliveries/s', unit: '1/s', format: 'rate', better: 'higher' },
  { key: 'bytesPerSecond', title: 'Bandwidth', unit: 'B/s', format: 'bytesPerSecond', better: 'higher' },
  { key: 'latencyMs.p50', title: 'p50', unit: 'ms', format: 'ms', better: 'lower' },
  { key: 'latencyMs.p95', title: 'p95', unit: 'ms', format: 'ms', better: 'lower' },
  { key: 'latencyMs.p99', title: 'p99', unit: 'ms', format: 'ms', better: 'lower' },
  { key: 'latencyMs.max', title: 'max', unit: 'ms', format: 'ms', better: 'lower' },
  { key: 'gapCount', title: 'Gaps', unit: '', format: 'count', better: 'lower' },
  { key: 'duplicateCount', title: 'Duplicates', unit: '', format: 'count', better: 'lower' },
  { key: 'serverCpuSeconds', title: 'Server CPU', unit: 's', format: 'seconds' },
  {
    key: 'deliveriesPerServerCpuSecond',
    title: 'Deliveries per CPU second',
    unit: '1/s',
    format: 'count',
    better: 'higher',
  },
  { key: 'serverRssBytes', title: 'Server RSS', unit: 'B', format: 'bytes', better: 'lower' },
  { key: 'serverEventLoopLagMs.p99', title: 'Loop lag p99', unit: 'ms', format: 'ms', better: 'lower' },
  { key: 'generatorUtilization', title: 'Generator busy', unit: '', format: 'percent' },
  { key: 'verdict', title: 'Verdict', unit: '', format: 'text' },
]

/** What a fixture differs in from the plain one. */
export interface FixtureChanges {
  readonly targets?: readonly string[]
  readonly tiers?: readonly number[]
  readonly seed?: number
  /** Multiplies what a delivery yields: 0.5 is a server that got twice as dear. */
  readonly speed?: number
  /** Relative noise of each repeat, in both directions. */
  readonly noise?: number
}

/** A result of the size and shape of a real one, with made-up figures that the seed alone decides. */
export function fixtureRecord(changes: FixtureChanges = {}): ResultRecord {
  const { tiers = TIERS, seed = 1, speed = 1, noise = 0.05, targets = TARGETS.map(({ name }) => name) } = changes
  const random = createRandom(seed, 0)
  const runs = TARGETS.filter(({ name }) => targets.includes(name)).flatMap((target) =>
    tiers.flatMap((subscribers) =>
      Array.from({ length: REPEATS }, (_, index) => ({
        ...runOf(target, subscribers, speed * (1 + noise * (2 * random() - 1))),
        repeat: index + 1,
      })),
    ),
  )
  const rows = TARGETS.filter(({ name }) => targets.includes(name)).flatMap(({ name }) =>
    tiers.map((subscribers) => medianOf(runs.filter((run) => run.target === name && run.subscribers === subscribers))),
  )
  const series = TARGETS.filter(({ name }) => targets.includes(name)).flatMap(({ name, perCpuSecond }) =>
    tiers.slice(-2).map(
      (subscribers): ResultSeries => ({
        target: name,
        subscribers,
        repeat: 1,
        title: 'deliveries',
        condition: { mode: 'flood' },
        unit: '1/s',
        format: 'rate',
        points: Array.from({ length: 100 }, (_, index) => ({
          atMs: index * 100,
          value: Math.min(perCpuSecond, 2e7) * (0.9 + 0.1 * random()),
        })),
      }),
    ),
  )
  return {
    command: "node benchmark.js --scenario fanout --tiers 10,100,500 --repeat 5 --assert 'gaps=0'",
    scenario: 'fanout',
    machine: {
      cpuModel: 'Example CPU @ 2.50GHz',
      cores: 2,
      memoryBytes: 8 * 2 ** 30,
      kernel: 'Linux 6.1.0',
      nodeVersion: 'v20.20.2',
      congestionControl: 'bbr',
      cpuGovernor: null,
      openFilesLimit: '20000',
      loadAverage: 0.07,
      gitCommit: '0123456789abcdef0123456789abcdef01234567',
      isGitDirty: false,
      startedAt: '2026-03-01T12:00:00.000Z',
    },
    config: { tiers, repeat: REPEATS, durationS: 10, payloadBytes: 100, targets },
    versions: { 'webmq-native': '0.1.0', uws: '20.52.0', ws: '8.23.0', socketio: '4.8.1' },
    columns: COLUMNS,
    identity: ['target', 'mode', 'subscribers'],
    rows,
    runs,
    series,
    notes: ['A flood reports no latency: it would be the length of the queue.'],
    assertions: [
      { text: 'gaps=0', isMet: true, actual: 0 },
      { text: 'p99<10ms', isMet: false, actual: 12.4 },
    ],
  }
}

function runOf({ name, perCpuSecond, p50 }: FixtureTarget, subscribers: number, luck: number): ResultRow {
  const efficiency = perCpuSecond * luck * (subscribers / 100) ** -0.12
  const deliveriesPerSecond = Math.min(efficiency * 0.8, 2.4e7 * luck)
  const isSaturated = deliveriesPerSecond > 2e7 && name === 'raw'
  const latency = p50 * Math.sqrt(subscribers / 10) * (2 - luck)
  return {
    target: name,
    mode: 'flood',
    subscribers,
    publishedPerSecond: deliveriesPerSecond / subscribers,
    deliveriesPerSecond,
    bytesPerSecond: deliveriesPerSecond * 100,
    gapCount: 0,
    duplicateCount: 0,
    serverCpuSeconds: (deliveriesPerSecond * 10) / efficiency,
    deliveriesPerServerCpuSecond: efficiency,
    serverRssBytes: 60 * MIB + subscribers * (name === 'ws' || name === 'socketio' ? 24_000 : 2_000),
    latencyMs: { p50: latency, p95: latency * 2.1, p99: latency * 3.4, max: latency * 9 },
    serverEventLoopLagMs: name === 'raw' ? null : { p50: 0.1, p95: 0.4, p99: latency / 4, max: latency },
    generatorCpuSeconds: 7.5,
    generatorUtilization: isSaturated ? 0.97 : 0.6,
    verdict: isSaturated ? 'generator saturated' : 'ok',
    verdictReason: isSaturated ? 'the generator was busy for 97 % of the time' : null,
    repeatCount: 1,
    spread: {},
  }
}

/** The run in the middle by deliveries per CPU second stands for the median of every column. */
function medianOf(runs: readonly ResultRow[]): ResultRow {
  const sorted = [...runs].sort((a, b) => (a.deliveriesPerServerCpuSecond ?? 0) - (b.deliveriesPerServerCpuSecond ?? 0))
  const middle = sorted[Math.floor(sorted.length / 2)]
  if (middle === undefined) throw new Error('a row needs a run')
  const spreadOf = (key: 'deliveriesPerSecond' | 'deliveriesPerServerCpuSecond') => {
    const values = runs.map((run) => run[key] ?? 0)
    return { min: Math.min(...values), max: Math.max(...values) }
  }
  return {
    ...middle,
    repeatCount: runs.length,
    spread: {
      deliveriesPerSecond: spreadOf('deliveriesPerSecond'),
      deliveriesPerServerCpuSecond: spreadOf('deliveriesPerServerCpuSecond'),
    },
  }
}
