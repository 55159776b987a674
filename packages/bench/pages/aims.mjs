// What was aimed at, and what things cost: each figure names its table, its rows and its column, so that it changes with it.
import { formatCell } from '../dist/report/format-cell.js'

const COST = 'deliveriesPerServerCpuSecond'
const NOTHING = '–'
const US_PER_SECOND = 1_000_000

/**
 * @typedef {object} Aim
 * @property {string} figure
 * @property {string} table
 * @property {Record<string, unknown>} where a value, or several; of several rows the worst counts
 * @property {readonly { key: string, over?: Record<string, unknown>, least?: number, most?: number, name?: string }[]} goals
 *   `over`: divided by the row that differs in this
 * @property {string} [bound] what keeps the figure from its aim, by a profile; shown while the aim is not met
 */

const than = (key, target, goal) => ({ key, over: { target }, ...goal })
const noneLost = { key: 'gapCount', most: 0, name: 'lost' }
const flood = (subscribers, uws, raw, bound) => ({
  figure: `Flood to ${subscribers.toLocaleString('en')}, deliveries per CPU s`,
  table: 'fan-out',
  where: { target: 'webmq-native', subscribers },
  goals: [than(COST, 'uws', { least: uws }), than(COST, 'raw', { least: raw }), noneLost],
  bound,
})
const everyday = (brokers, mode, most, bound) => ({
  figure: `Everyday traffic over ${brokers}, µs of server CPU per delivery`,
  table: 'everyday',
  where: { target: 'webmq-native', mode },
  goals: [{ key: 'serverCpuUsPerDelivery', over: { target: 'by-hand' }, most }],
  bound,
})
const messages = (sizes, payloadBytes, least, bound) => ({
  figure: `Messages from clients of ${sizes}, processed per CPU s`,
  table: 'messages-from-clients',
  where: { target: 'webmq-native', payloadBytes },
  goals: [than('receivedPerServerCpuSecond', 'uws', { least })],
  bound,
})
/** Faults of `overload`. */
const PAST = {
  freeze: 'A broker stood still for 3 s',
  stop: 'A node stood still for 5 s',
  slow: 'The network to a broker was 200 ms slower for 5 s',
}
const logged = (target, publisher, follower) => ({
  figure: `A logged message over ${target}, µs of CPU of the publishing and the following node`,
  table: 'logged-messages',
  where: { target },
  goals: [
    { key: 'publisherCpuUs', most: publisher },
    { key: 'followerCpuUs', most: follower },
  ],
  bound: 'sockets and streams of Node are half of the time, and the publishing node follows the log, too',
})

const SMALL_BOUND = 'JavaScript is 59 %, flat: reading the header, a view of the payload, the log; uws looks at nothing'
const LARGE_BOUND = 'warm: copies for events, Node and log 30 %, the kernel 30, JavaScript 20; cold: compiling a third'
const AMQP_BOUND =
  'amqplib and the streams of Node are two thirds of the JavaScript; one `send` per delivery is a third of all time'
const JAVASCRIPT_BOUND =
  'half is one `send` per delivery on the I/O thread, half JavaScript with a flat profile: ids, order, limits'
const HISTORY_BOUND =
  'the kernel writes for 62 % of the time, JavaScript takes 33, and the load shares the two cores; an idle node has 92 MB'
const CORES_BOUND = 'servers, clients and broker want more than the two cores'

/** @type {readonly Aim[]} */
const AIMS = [
  everyday('RabbitMQ', 'rabbitmq', 1.1, AMQP_BOUND),
  everyday('the other brokers', ['redis', 'nats', 'mesh', 'memory'], 1, JAVASCRIPT_BOUND),
  messages('175 and 1,024 B', [175, 1_024], 1, SMALL_BOUND),
  messages('16 and 64 KiB', [16_384, 65_536], 0.7, LARGE_BOUND),
  {
    figure: 'Those of 175 and 1,024 B with tokens, limits, metrics and audit log',
    table: 'messages-from-clients',
    where: { target: 'webmq-guarded', payloadBytes: [175, 1_024] },
    goals: [than('receivedPerServerCpuSecond', 'webmq-native', { least: 0.9 })],
    bound: 'the grant, two rates and the counters of each message: no function takes more than 4 %',
  },
  {
    figure: 'Storm of 5,000 with new tokens, connects per CPU s',
    table: 'connection-storm',
    where: { target: 'webmq-native', mode: 'jwt' },
    goals: [than('connectsPerServerCpuSecond', 'uws', { least: 0.9 })],
    bound: 'JavaScript 27 %, compiling it 22, kernel 20, the signature 6: a storm ends before its code is compiled',
  },
  {
    figure: 'The same without tokens',
    table: 'connection-storm',
    where: { target: 'webmq-native', mode: 'none' },
    goals: [
      than('connectsPerServerCpuSecond', 'uws', { least: 1.5 }),
      than('connectsPerServerCpuSecond', 'ws', { least: 5 }),
    ],
    bound: 'of 61 µs the I/O thread takes 26, mostly in the kernel, JavaScript 15 and compiling it 11',
  },
  {
    figure: '1,000 connections x 100/s, beside a bare write loop: cores, p99 of the whole fan-out',
    table: 'paced',
    where: { target: 'webmq-native', ratePerSecond: 100 },
    goals: [than('serverCpuShare', 'raw-loop', { most: 1.1 }), than('fanoutMs.p99', 'raw-loop', { most: 1.2 })],
    bound: 'the kernel writes for 83 % of the time; the loop has neither the JavaScript, 13 %, nor a second thread',
  },
  {
    figure: '1,000 x 1,000/s: p99 of the whole fan-out, cores, lag of the event loop',
    table: 'paced',
    where: { target: 'webmq-native', ratePerSecond: 1_000 },
    goals: [
      { key: 'fanoutMs.p99', most: 25 },
      { key: 'serverCpuShare', most: 0.5, name: 'cores' },
      { key: 'serverEventLoopLagMs.p99', most: 5 },
    ],
    bound: 'the pause between flushes trades latency for processor time: `flushIntervalMs`',
  },
  {
    figure: '1,000 x 16,000/s: delivered, cores',
    table: 'paced',
    where: { target: 'webmq-native', ratePerSecond: 16_000 },
    goals: [
      { key: 'deliveriesPerSecond', least: 15_800_000 },
      { key: 'serverCpuShare', most: 1, name: 'cores' },
      noneLost,
    ],
  },
  {
    figure: 'Round trip on an idle server, p50',
    table: 'one-connection-on-an-idle-server',
    where: { target: 'webmq-native' },
    goals: [than('latencyMs.p50', 'uws', { most: 1.1 })],
  },
  {
    figure: 'Ping of 100 connections, pings per CPU s',
    table: 'ping-under-load',
    where: { target: 'webmq-native', subscribers: 100 },
    goals: [than('pingsPerServerCpuSecond', 'uws', { least: 0.8 })],
  },
  flood(10, 1, 0.6, 'a publish in JavaScript is 70 %, and ten share it; raw has none'),
  flood(100, 5, 0.7, 'the kernel writes for 74 % of the time, JavaScript has 21, which raw has not'),
  flood(1_000, 6, 0.7, 'the kernel writes for 90 % of the time, the engine has 1'),
  flood(5_000, 7, 0.7, 'the kernel writes for 92 % of the time, the engine has 1'),
  logged('nats', 6, 4),
  logged('rabbitmq', 11, 16),
  {
    figure: 'Flood over TLS to 100 and 1,000, deliveries per CPU s',
    table: 'tls',
    where: { target: 'webmq-native', label: 'flood' },
    goals: [than(COST, 'uws', { least: 3 }), than(COST, 'ws', { least: 20 }), noneLost],
    bound: 'each connection encrypts with its own key: at 1,000 the kernel has 59 %, AES 23, copies for it 8',
  },
  {
    figure: '1,000 x 100/s over TLS, deliveries per CPU s beside plain',
    table: 'tls',
    where: { target: 'webmq-native', label: '100/s' },
    goals: [{ key: COST, over: { label: '100/s, plain' }, least: 0.77 }],
  },
  ...['uws', 'ws'].map((peer) => ({
    figure: `webmq-${peer} beside bare ${peer}, deliveries per CPU s`,
    table: 'other-transports',
    where: { target: `webmq-${peer}` },
    goals: [than(COST, peer, { least: 0.6 })],
    bound: 'a publish costs 32 µs before the library has it, which few listeners share',
  })),
  {
    figure: 'Two I/O threads against one, deliveries per CPU s',
    table: 'two-io-threads',
    where: { target: 'webmq-native:2' },
    goals: [than(COST, 'webmq-native:1', { least: 0.8 })],
  },
  {
    figure: 'Most connections on this machine',
    table: 'the-most-connections',
    where: {},
    goals: [{ key: 'maxConnections', least: 40_000 }],
  },
  {
    figure: 'Memory of an idle connection',
    table: 'memory-of-an-idle-connection',
    where: { target: 'webmq-native' },
    goals: [{ key: 'bytesPerConnection', most: 1_000 }],
  },
  {
    figure: 'Publish beside 1,000,000 patterns against 100',
    table: 'a-publish-beside-patterns-that-do-not-match',
    where: { patterns: 1_000_000 },
    goals: [{ key: 'matchCostRatio', most: 1.5 }],
  },
  {
    figure: '100 and 400 real clients, p99',
    table: 'many-clients-that-listen-and-publish',
    where: {},
    goals: [{ key: 'latencyMs.p99', most: 10 }, noneLost],
    bound: CORES_BOUND,
  },
  {
    figure: 'Up to 400 clients on 1 and 4 nodes over RabbitMQ, p99',
    table: 'real-clients-over-brokers',
    where: { target: 'webmq-native+rabbitmq' },
    goals: [{ key: 'latencyMs.p99', most: 50 }, noneLost],
    bound: CORES_BOUND,
  },
  {
    figure: 'Auction, 10,000 connections: p99, delivered; growth exponent',
    table: 'auction',
    where: { label: 'no limit', subscribers: 10_000 },
    goals: [
      { key: 'latencyMs.p99', most: 150 },
      { key: 'deliveryRate', least: 1 },
      { key: 'growthExponent', most: 0.68 },
    ],
    bound: 'one machine runs everything, so a write costs the same with more nodes',
  },
  {
    figure: 'Up to three times what a broker takes: goodput, refusals of one message, failed',
    table: 'overload',
    where: { fault: 'none' },
    goals: [
      { key: 'goodput', least: 0.95 },
      { key: 'mostRefusals', most: 3 },
      { key: 'failedCount', most: 0 },
    ],
  },
  ...Object.keys(PAST).map((fault) => ({
    figure: `${PAST[fault]}: normal again after, of the ideal; failed`,
    table: 'overload',
    where: { fault },
    goals: [
      { key: 'normalRatio', most: 1.3 },
      { key: 'failedCount', most: 0 },
    ],
  })),
  {
    figure: 'Fleet of three nodes, three brokers, six faults: lost, doubled, out of order, told gaps',
    table: 'a-fleet-while-things-break',
    where: {},
    goals: ['gapCount', 'duplicateCount', 'reorderedCount', 'toldGapCount'].map((key) => ({ key, most: 0 })),
  },
  {
    figure: 'History load of 1,500 users, memory: broadcast and history p95, peak memory',
    table: 'history',
    where: { target: 'webmq-native', label: '0.3, 0.3' },
    goals: [
      { key: 'broadcastMs.p95', most: 4 },
      { key: 'historyMs.p95', most: 0.8 },
      { key: 'serverPeakRssBytes', most: 85_000_000 },
    ],
    bound: HISTORY_BOUND,
  },
  ...[
    [1, 5, 4],
    [3, 10, 5],
  ].map(([backends, broadcast, history]) => ({
    figure: `The same over Redis, nodes: ${backends}: broadcast and history p95`,
    table: 'history',
    where: { target: 'webmq-native+redis', backends },
    goals: [
      { key: 'broadcastMs.p95', most: broadcast },
      { key: 'historyMs.p95', most: history },
    ],
    bound: HISTORY_BOUND,
  })),
  {
    figure: 'What a replay of 100,000 adds to the p99 of others',
    table: 'a-long-replay-beside-live-messages',
    where: { messages: 100_000 },
    goals: [{ key: 'addedP99Ms', most: 5 }],
  },
  {
    figure: 'Five listens resumed together, to one with the same messages; the slowest publish beside',
    table: 'a-long-replay-beside-live-messages',
    where: { listens: 5 },
    goals: [
      { key: 'replayMs.p50', over: { listens: 1 }, most: 1.5 },
      { key: 'publishMs.max', most: 50 },
    ],
  },
]

/** Cells of the table of aims. @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables */
function aimRows(tables) {
  let said = ''
  return AIMS.map(({ figure, table, where, goals, bound = '' }) => {
    const figures = tables.get(table)
    const judged = goals.map((goal) => {
      const value = worst(goal, valuesOf(figures, where, goal))
      const isMet =
        value === undefined ? undefined : value >= (goal.least ?? -Infinity) && value <= (goal.most ?? Infinity)
      return { isMet, wanted: goalText(goal, figures), text: measuredText(goal, value, figures) }
    })
    const met = judged.map(({ isMet }) => isMet)
    const verdict = met.includes(undefined)
      ? NOTHING
      : met.every(Boolean)
        ? 'yes'
        : met.some(Boolean)
          ? 'in part'
          : '**no**'
    const isMissed = met.includes(false)
    const cells = [judged.map(({ wanted }) => wanted), judged.map(({ text }) => text)].map((texts) => texts.join(', '))
    const shown = isMissed ? bound : ''
    const isSaid = shown !== '' && shown === said
    said = shown
    return [figure, ...cells, verdict, isSaid ? 'the same' : shown]
  })
}

/** The table of what is not met, and how many figures are. @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables */
export function missedAims(tables) {
  const rows = aimRows(tables)
  const missed = rows.filter(([, , , verdict]) => verdict !== 'yes')
  return { missed, metCount: rows.length - missed.length }
}

function valuesOf(figures, where, { key, over }) {
  const found = rowsWhere(figures, where)
  const own = (row) => [
    row[key],
    ...(over === undefined ? [] : [rowsWhere(figures, { ...identityOf(row, figures), ...over })[0]?.[key]]),
  ]
  return found
    .map(own)
    .map(([value, base]) => (over === undefined ? value : value / base))
    .filter(Number.isFinite)
}

/** What distinguishes a row: its texts, and the numbers that the load sets. */
const LOADS = ['subscribers', 'payloadBytes', 'ratePerSecond', 'backends', 'nodes', 'messages', 'listens', 'patterns']
function identityOf(row, { columns }) {
  const keys = columns.filter(({ key, format }) => LOADS.includes(key) || (format === 'text' && key !== 'verdict'))
  return Object.fromEntries(keys.map(({ key }) => [key, row[key]]))
}

function rowsWhere(figures, where) {
  const isOf = (row) => Object.entries(where).every(([key, value]) => [value].flat().includes(row[key]))
  return (figures?.rows ?? []).filter(isOf)
}

function worst({ least }, values) {
  if (values.length === 0) return undefined
  return least === undefined ? Math.max(...values) : Math.min(...values)
}

function goalText(goal, figures) {
  const { least, most } = goal
  return `${least === undefined ? '≤' : '≥'} ${measuredText(goal, least ?? most, figures)}`
}

function measuredText({ key, over, name }, value, figures) {
  if (value === undefined) return NOTHING
  if (over !== undefined) return `${Number(value.toPrecision(2))}x ${Object.values(over)[0]}`
  const column = figures?.columns.find((one) => one.key === key)
  const text = formatCell(value, column?.format ?? 'number')
  return name === undefined ? text : `${text} ${name}`
}

/** What things cost a node, for docs/scaling.md. */
const COSTS = [
  {
    what: 'memory of an idle connection',
    table: 'memory-of-an-idle-connection',
    where: { target: 'webmq-native' },
    key: 'bytesPerConnection',
  },
  {
    what: 'a connect without a token',
    table: 'connection-storm',
    where: { target: 'webmq-native', mode: 'none' },
    per: 'connectsPerServerCpuSecond',
  },
  {
    what: 'a connect with a new HS256 token',
    table: 'connection-storm',
    where: { target: 'webmq-native', mode: 'jwt' },
    per: 'connectsPerServerCpuSecond',
  },
  {
    what: 'a connect with a known token',
    table: 'connection-storm',
    where: { target: 'webmq-native', mode: 'jwt, known' },
    per: 'connectsPerServerCpuSecond',
  },
  {
    what: 'a ping and its answer, one connection',
    table: 'one-connection-on-an-idle-server',
    where: { target: 'webmq-native' },
    per: 'pingsPerServerCpuSecond',
  },
  {
    what: 'a ping and its answer, 1,000 at once',
    table: 'ping-under-load',
    where: { target: 'webmq-native', subscribers: 1_000 },
    per: 'pingsPerServerCpuSecond',
  },
  {
    what: 'a message of a client, 175 B, many at once',
    table: 'messages-from-clients',
    where: { target: 'webmq-native', payloadBytes: 175 },
    per: 'receivedPerServerCpuSecond',
  },
  {
    what: 'the same with tokens, limits, metrics and audit log',
    table: 'messages-from-clients',
    where: { target: 'webmq-guarded', payloadBytes: 175 },
    per: 'receivedPerServerCpuSecond',
  },
  {
    what: 'a delivery by itself: a write to a socket',
    table: 'paced',
    where: { target: 'webmq-native', ratePerSecond: 100 },
    per: COST,
  },
  {
    what: 'a delivery of a flood to 1,000',
    table: 'fan-out',
    where: { target: 'webmq-native', subscribers: 1_000 },
    per: COST,
  },
  ...['redis', 'nats', 'rabbitmq'].flatMap((target) => [
    {
      what: `a logged message over ${target}: the node that publishes`,
      table: 'logged-messages',
      where: { target },
      key: 'publisherCpuUs',
      unit: ' µs',
    },
    {
      what: `a logged message over ${target}: each node`,
      table: 'logged-messages',
      where: { target },
      key: 'followerCpuUs',
      unit: ' µs',
    },
    {
      what: `a logged message over ${target}: the broker`,
      table: 'logged-messages',
      where: { target },
      key: 'brokerCpuUs',
      unit: ' µs',
    },
  ]),
]

/** Cells of the table of costs. @param {ReadonlyMap<string, import('./figures.mjs').Figures>} tables */
export function costRows(tables) {
  return COSTS.map(({ what, table, where, key, per, unit = '' }) => {
    const figures = tables.get(table)
    const [row] = rowsWhere(figures, where)
    const column = figures?.columns.find((one) => one.key === (key ?? per))
    const text = (value) => {
      if (typeof value !== 'number') return NOTHING
      if (per !== undefined) return `${Number((US_PER_SECOND / value).toPrecision(2))} µs`
      return `${formatCell(value, column.format)}${unit}`
    }
    const spread = row?.spread?.[key ?? per]
    const [low, high] = per === undefined ? [spread?.min, spread?.max] : [spread?.max, spread?.min]
    const range = spread === undefined || low === high ? '' : `${text(low)} to ${text(high)}`
    return [what, text(row?.[key ?? per]), range, table]
  })
}
