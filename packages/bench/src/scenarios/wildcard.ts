import { positiveInteger } from '../options.js'
import { column, VERDICT_COLUMN } from '../results/columns.js'
import { cellOf, type ResultColumn, type ResultRow } from '../results/result.js'
import { createTrialScenario } from '../trials/create-trial-scenario.js'
import { PATTERNS_PER_CONNECTION, PatternListeners } from '../trials/pattern-listeners.js'
import { usageBetween } from '../trials/trial.js'
import type { TrialConfig } from '../trials/trial-options.js'
import type { Measured, TrialContext, TrialScenario } from '../trials/trial-scenario.js'
import { judge } from '../trials/verdict.js'

interface WildcardConfig extends TrialConfig {
  readonly publishes: number
}

/** Eight times the router's match cache, so that every publish is matched anew. */
const UNCACHED_KEYS = 131_072
const NS_PER_US = 1_000

const nsColumn = (key: string, title: string): ResultColumn => ({
  ...column(key, title, 'number', 'lower'),
  unit: 'ns',
})

const wildcard: TrialScenario<WildcardConfig> = {
  name: 'wildcard',
  summary: 'the cost of a publish that matches none of many patterns',
  examples: [
    ['--tiers 100,10000,1000000', 'three numbers of patterns'],
    ["--assert 'matchCostRatio <= 1.5'", 'in CI: flat from the fewest patterns to the most'],
  ],
  abilities: ['patterns'],
  defaults: { targets: ['webmq-native'], tiers: [100, 1_000, 10_000, 100_000, 1_000_000] },
  tiersHelp: 'different patterns that are listened with, one condition each',
  caseColumns: [column('patterns', 'Patterns', 'count')],
  columns: [
    nsColumn('publishNs', 'Publish, key new (ns)'),
    nsColumn('cachedPublishNs', 'Publish, key known (ns)'),
    column('matchCostRatio', 'Against fewest', 'ratio', 'lower'),
    column('listensPerSecond', 'Listens/s', 'rate', 'higher'),
    column('bytesPerPattern', 'Server RSS each', 'bytes', 'lower'),
    column('serverRssBytes', 'Server RSS', 'bytes', 'lower'),
    VERDICT_COLUMN,
  ],
  addOptions(command) {
    command.option('--publishes <n>', 'messages per measurement', positiveInteger, 500_000)
  },
  readConfig: (common, { publishes }) => ({ ...common, publishes }),
  cases: ({ tiers }) =>
    tiers.map((count) => ({
      mode: 'none match',
      subscribers: Math.ceil(count / PATTERNS_PER_CONNECTION),
      fields: { patterns: count },
    })),
  notes: ({ publishes }) => [
    `Nanoseconds of the server's CPU per publish in its own process, ${publishes.toLocaleString('en')} of them, to keys that no pattern matches: to ${UNCACHED_KEYS.toLocaleString('en')} keys in turn, more than the router remembers, and to one.`,
    `${PATTERNS_PER_CONNECTION} patterns per connection: keys, *, # and patterns that begin with *, a quarter each.`,
  ],
  measure: measureWildcard,
  derive: (rows) => rows.map((row) => ({ ...row, matchCostRatio: costRatio(row, rows) })),
}

/** The cost of this row against that of the row with the fewest patterns. */
function costRatio(row: ResultRow, rows: readonly ResultRow[]): number | null {
  const [least] = rows
    .filter(({ target }) => target === row.target)
    .toSorted((a, b) => Number(a.patterns) - Number(b.patterns))
  const [cost, base] = [cellOf(row, 'publishNs'), least === undefined ? null : cellOf(least, 'publishNs')]
  return typeof cost === 'number' && typeof base === 'number' && base > 0 ? cost / base : null
}

async function measureWildcard({
  config,
  testCase,
  progress,
  startTrial,
}: TrialContext<WildcardConfig>): Promise<Measured> {
  const patternCount = Number(testCase.fields.patterns)
  const trial = await startTrial({})
  const { target } = trial
  const listeners = new PatternListeners()
  try {
    await target.collect()
    const before = await trial.mark()
    progress.phase('listening')
    await progress.during(listeners.add(target.port, patternCount), {
      counts: () => ({ listens: listeners.patternCount }),
    })
    await target.collect()
    const listening = await trial.mark()
    progress.phase('publishing')
    const costNs = async (distinctKeys: number) => {
      const { cpuUs, count } = await progress.during(target.publishKeys({ count: config.publishes, distinctKeys }))
      return (cpuUs * NS_PER_US) / count
    }
    const publishNs = await costNs(UNCACHED_KEYS)
    const cachedPublishNs = await costNs(1)
    return {
      figures: {
        ...usageBetween(listening, await trial.mark()),
        publishNs,
        cachedPublishNs,
        listensPerSecond: (patternCount * 1_000_000) / (listening.atUs - before.atUs),
        bytesPerPattern: (listening.server.rssBytes - before.server.rssBytes) / patternCount,
        serverRssBytes: listening.server.rssBytes,
        ...judge({}),
      },
    }
  } finally {
    listeners.close()
  }
}

/** Whether matching costs more with more patterns. */
export const wildcardScenario = createTrialScenario(wildcard)
