import { JUDGEMENT_COLUMNS, percentileColumns } from '../../results/columns.js'
import type { ResultColumn } from '../../results/result.js'
import { createTrialScenario } from '../../trials/create-trial-scenario.js'
import type { TrialScenario } from '../../trials/trial-scenario.js'
import { measureHostile } from './measure.js'
import { addHostileOptions, type HostileConfig, readHostileConfig } from './options.js'

const fault = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: '',
  format: 'count',
  better: 'lower',
  repeats: 'max',
})
const share = (key: string, title: string): ResultColumn => ({ key, title, unit: '', format: 'ratio', better: 'lower' })
const bytes = (key: string, title: string): ResultColumn => ({
  key,
  title,
  unit: 'B',
  format: 'bytes',
  better: 'lower',
})

const hostile: TrialScenario<HostileConfig> = {
  name: 'hostile',
  summary: 'a catalogue of hostile clients, 1 % of the connections: what they do to the others and to the server',
  examples: [
    ['--json hostile.json --html hostile.html', 'the whole catalogue: about ten minutes'],
    ['--case search-reads,presence-get', 'two cases'],
    ['--case publish-flood --connections 200 --hostile 20 --duration 10', 'more of them, for longer'],
  ],
  abilities: ['patterns'],
  defaults: { targets: ['webmq-native'], repeat: 1, duration: 5, payload: 200 },
  assertions: [
    'latencyShare <= 1',
    'pingShare <= 1',
    'memoryShare <= 1',
    'lostCount = 0',
    'duplicateCount = 0',
    'honestClosedCount = 0',
    'refusedCount = 0',
    'healthFailedCount = 0',
    'diedCount = 0',
  ],
  caseColumns: [{ key: 'case', title: 'Case', unit: '', format: 'text' }],
  columns: [
    ...percentileColumns('latencyMs', '', ['p50', 'p99', 'max']),
    { key: 'baselineMs.p99', title: 'p99 without', unit: 'ms', format: 'ms' },
    share('latencyRatio', 'Ratio'),
    share('latencyShare', 'of allowed'),
    ...percentileColumns('pingMs', 'Ping', ['p50', 'p99', 'max']),
    { key: 'pingBaselineMs.p99', title: 'Ping p99 without', unit: 'ms', format: 'ms' },
    share('pingRatio', 'Ratio'),
    share('pingShare', 'of allowed'),
    fault('lostCount', 'Lost'),
    fault('duplicateCount', 'Duplicates'),
    fault('refusedCount', 'Refused'),
    fault('honestClosedCount', 'Closed'),
    fault('healthFailedCount', '/health failed'),
    fault('diedCount', 'Died or stuck'),
    bytes('serverPeakRssBytes', 'Server peak RSS'),
    bytes('rssGrowthBytes', 'Growth'),
    share('memoryShare', 'of bound'),
    { key: 'serverEventLoopLagMs.max', title: 'Event-loop lag max', unit: 'ms', format: 'ms', better: 'lower' },
    { key: 'baselineLagMs.max', title: 'without', unit: 'ms', format: 'ms' },
    { key: 'serverCpuSeconds', title: 'Server CPU', unit: 's', format: 'seconds', better: 'lower' },
    { key: 'hostileCpuSeconds', title: 'Hostile CPU', unit: 's', format: 'seconds' },
    { key: 'proberLagMs.p99', title: 'Prober lag p99', unit: 'ms', format: 'ms' },
    ...JUDGEMENT_COLUMNS,
    { key: 'hostileOperationsPerSecond', title: 'Hostile ops/s', unit: '1/s', format: 'rate' },
    { key: 'hostileSentBytesPerSecond', title: 'sent', unit: 'B/s', format: 'bytesPerSecond' },
    { key: 'hostileReceivedBytesPerSecond', title: 'received', unit: 'B/s', format: 'bytesPerSecond' },
    { key: 'hostileConnectCount', title: 'connects', unit: '', format: 'count' },
    { key: 'hostileGot', title: 'got', unit: '', format: 'text' },
  ],
  addOptions: addHostileOptions,
  readConfig: readHostileConfig,
  cases: ({ cases, tiers }) =>
    tiers.flatMap((subscribers) => cases.map((name) => ({ mode: 'hostile', subscribers, fields: { case: name } }))),
  notes: ({ listeners, publishers, pingers, hostile: count, rate, operations, bytes: bytesPerSecond }) => [
    `Honest load: ${publishers} publishers send ${rate} messages/s in all, ${listeners} listeners get each of them, ${pingers} clients ping four times a second, and one asks for /health ten times a second.`,
    `Hostile load: ${count} clients in a process of their own, each at most ${operations} operations and ${bytesPerSecond} bytes per second; a connect counts as ten operations.`,
    'Each case has a server of its own, and its baseline is the same load on the same server just before. "of allowed" is p99 / (2 x baseline p99 + 5 ms).',
    '"of bound" is the growth of the server over what its defaults allow all hostile connections, the log, the remembered ids and garbage to hold.',
  ],
  measure: measureHostile,
}

/** What hostile clients do to everybody else. */
export const hostileScenario = createTrialScenario(hostile)
