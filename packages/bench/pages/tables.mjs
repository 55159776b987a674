// The tables of docs/benchmarks.md: what makes each, and the code that it measures. In the order of their importance, in
// which `npm run docs:benchmarks -- --measure` takes them.

const ENGINE = [
  'packages/native/crates',
  'packages/server/src/adapters/transports',
  'packages/server/src/kernel/session',
]
const SERVER = [...ENGINE, 'packages/server/src/kernel/publishing', 'packages/server/src/kernel/routing']
const BROKERS = ['nats', 'rabbitmq', 'redis'].map((name) => `packages/broker-${name}/src`)
const NODES = [...SERVER, 'packages/server/src/adapters/brokers', ...BROKERS]
const LIBRARY = [...NODES, 'packages/client/src']
const LOGINS = [...ENGINE, 'packages/server/src/kernel/identity']

const COST = 'deliveriesPerServerCpuSecond'
const FLOOD = [
  'target',
  'subscribers',
  COST,
  'deliveriesPerSecond',
  'gapCount',
  'serverRssBytes',
  'serverEventLoopLagMs.p99',
]
const program = (args) => args.split(' ').filter(Boolean)
const bench = (args) => program(`benchmark.js ${args}`)

/**
 * @typedef {object} Table
 * @property {readonly { label?: string, args: readonly string[] }[]} runs programs of packages/bench; their rows stand
 *   below each other, those with a label in a column of it
 * @property {string} dry flags that make each run short, to try the command; they come last
 * @property {number} seconds estimate of all runs together, on two cores
 * @property {readonly string[]} keys columns of the result
 * @property {readonly string[]} [fileOnly] of them, those that the page leaves out
 * @property {(row: Record<string, unknown>) => boolean} [shows] rows of the page; the file has all
 * @property {readonly string[]} [ranges] of them, those with the smallest and the largest repeat
 * @property {{ key: string, targets: readonly string[], same: readonly string[] }} [beside] ratios of WebMQ to peers in
 *   the same run, in rows that have the same in these columns
 * @property {readonly string[]} measures
 */

/** @type {Record<string, Table>} */
export const TABLES = {
  'fan-out': {
    runs: [
      {
        args: bench(
          '--scenario fanout --target webmq-native,uws,raw --tiers 10,100,1000,5000 --duration 1.5 --warmup 0.5',
        ),
      },
    ],
    dry: '--tiers 10,100 --duration 0.2 --repeat 1',
    seconds: 150,
    keys: FLOOD,
    ranges: [COST],
    beside: { key: COST, targets: ['uws', 'raw'], same: ['subscribers'] },
    fileOnly: ['serverRssBytes'],
    measures: SERVER,
  },
  'messages-from-clients': {
    runs: [
      {
        args: bench(
          '--scenario matrix --target webmq-native,webmq-guarded,uws --tiers 100 --payloads 175,1024,16384,65536 --duration 1 --repeat 3',
        ),
      },
    ],
    dry: '--payloads 175 --tiers 10 --duration 0.2 --repeat 1',
    seconds: 150,
    keys: [
      'target',
      'payloadBytes',
      'receivedPerServerCpuSecond',
      'receivedPerSecond',
      'bytesPerSecond',
      'gapCount',
      'serverEventLoopLagMs.p99',
    ],
    ranges: ['receivedPerServerCpuSecond'],
    beside: { key: 'receivedPerServerCpuSecond', targets: ['uws', 'webmq-native'], same: ['payloadBytes'] },
    fileOnly: ['receivedPerSecond'],
    measures: SERVER,
  },
  'connection-storm': {
    runs: [
      { args: bench('--scenario storm --tiers 5000 --target webmq-native,uws,ws') },
      { args: bench('--scenario storm --tiers 5000 --target webmq-native,uws --tokens known') },
      { args: bench('--scenario storm --tiers 5000 --target webmq-native,uws,ws,raw --auth none') },
    ],
    dry: '--tiers 100 --repeat 1',
    seconds: 120,
    keys: [
      'target',
      'mode',
      'subscribers',
      'connectsPerServerCpuSecond',
      'connectsPerSecond',
      'latencyMs.p50',
      'latencyMs.p99',
      'failedCount',
    ],
    ranges: ['connectsPerServerCpuSecond'],
    beside: { key: 'connectsPerServerCpuSecond', targets: ['uws', 'ws'], same: ['mode'] },
    measures: LOGINS,
  },
  restart: {
    runs: [{ args: bench('--scenario restart') }],
    dry: '--tiers 100 --others 5 --repeat 1',
    seconds: 90,
    keys: [
      'mode',
      'subscribers',
      'backMs',
      'connectsPerSecond',
      'quietMs.p99',
      'latencyMs.p99',
      'latencyMs.max',
      'gapCount',
      'failedCount',
      'serverRssBytes',
    ],
    ranges: ['backMs', 'latencyMs.p99'],
    measures: LOGINS,
  },
  paced: {
    runs: [
      {
        args: bench(
          '--scenario paced --tiers 1000 --rate 100 --duration 3 --warmup 0.5 --target webmq-native,raw-loop,uws,ws',
        ),
      },
      {
        args: bench(
          '--scenario paced --tiers 1000 --rate 1000,16000 --duration 2 --warmup 0.5 --target webmq-native,uws,raw',
        ),
      },
    ],
    dry: '--tiers 10 --duration 0.2 --repeat 1',
    seconds: 190,
    keys: [
      'target',
      'ratePerSecond',
      'latencyMs.p50',
      'latencyMs.p99',
      'fanoutMs.p99',
      'serverCpuShare',
      'deliveriesPerSecond',
      COST,
      'gapCount',
      'serverEventLoopLagMs.p99',
    ],
    ranges: ['latencyMs.p99', 'serverCpuShare'],
    fileOnly: ['deliveriesPerSecond'],
    measures: SERVER,
  },
  streams: {
    runs: [{ args: bench('--scenario streams --tiers 1000,10000 --streams 100 --rate 50 --duration 5 --repeat 3') }],
    dry: '--tiers 10 --streams 2 --duration 0.2 --repeat 1',
    seconds: 190,
    keys: [
      'target',
      'mode',
      'subscribers',
      'latencyMs.p50',
      'latencyMs.p99',
      'serverCpuShare',
      'deliveriesPerSecond',
      COST,
      'gapCount',
    ],
    ranges: ['latencyMs.p99', COST],
    measures: SERVER,
  },
  'one-connection-on-an-idle-server': {
    runs: [{ args: bench('--scenario ping --tiers 1 --pings 20000 --target webmq-native,uws,ws') }],
    dry: '--pings 100 --repeat 1',
    seconds: 35,
    keys: ['target', 'latencyMs.p50', 'latencyMs.p99', 'pingsPerServerCpuSecond'],
    ranges: ['latencyMs.p50', 'pingsPerServerCpuSecond'],
    measures: SERVER,
  },
  'ping-under-load': {
    runs: [
      { args: bench('--scenario ping --tiers 100,1000 --pings 50 --repeat 3 --target webmq-native,uws,ws,socketio') },
    ],
    dry: '--tiers 10 --repeat 1',
    seconds: 80,
    keys: ['target', 'subscribers', 'pingsPerServerCpuSecond', 'latencyMs.p50', 'latencyMs.p99', 'missingCount'],
    ranges: ['pingsPerServerCpuSecond'],
    beside: { key: 'pingsPerServerCpuSecond', targets: ['uws', 'ws'], same: ['subscribers'] },
    shows: ({ subscribers }) => subscribers === 1_000,
    measures: SERVER,
  },
  'one-node-publishes-another-fans-out': {
    runs: [
      {
        args: bench(
          '--scenario fanout --mode redis,mesh,rabbitmq,nats --tiers 10,100,1000 --target webmq-native --duration 2 --warmup 0.5 --repeat 3',
        ),
      },
    ],
    dry: '--mode redis,mesh --tiers 10 --duration 0.3 --repeat 1',
    seconds: 230,
    keys: [
      'mode',
      'subscribers',
      'deliveriesPerTotalCpuSecond',
      'publishedPerSecond',
      'deliveriesPerSecond',
      'publisherCpuSeconds',
      'listenerCpuSeconds',
      'brokerCpuSeconds',
      'gapCount',
      'duplicateCount',
      'closedCount',
    ],
    ranges: ['deliveriesPerTotalCpuSecond'],
    fileOnly: ['publishedPerSecond'],
    shows: ({ subscribers }) => subscribers !== 100,
    measures: NODES,
  },
  'logged-messages': {
    runs: ['redis', 'nats', 'rabbitmq'].map((broker) => ({
      args: program(`figures/logged.mjs --broker ${broker} --seconds 4 --rounds 3`),
    })),
    dry: '--seconds 1 --rounds 1',
    seconds: 100,
    keys: ['target', 'publisherCpuUs', 'followerCpuUs', 'brokerCpuUs', 'acceptedPerSecond'],
    ranges: ['publisherCpuUs', 'followerCpuUs'],
    measures: NODES,
  },
  history: {
    runs: [
      { label: '0.3, 0.3', args: bench('--scenario history --preset minute') },
      { label: '0.3, 0.3', args: bench('--scenario history --preset minute --broker redis') },
      { label: '0.3, 0.3', args: bench('--scenario history --preset minute --broker redis --backends 3') },
      {
        label: '0.5, 0.7 (heading)',
        args: bench('--scenario history --preset minute --senders-ratio 0.5 --sending-rate 0.7'),
      },
    ],
    dry: '--users 20 --duration 4 --rounds 1',
    seconds: 260,
    keys: [
      'target',
      'backends',
      'subscribers',
      'broadcastMs.avg',
      'broadcastMs.p95',
      'historyMs.avg',
      'historyMs.p95',
      'rttMs.p95',
      'joinMissCount',
      'joinDuplicateCount',
      'joinInversionCount',
      'serverCpuSecondsPerWindow',
      'serverPeakRssBytes',
    ],
    fileOnly: ['broadcastMs.avg', 'historyMs.avg'],
    measures: [...NODES, 'packages/server/src/kernel/replay'],
  },
  auction: {
    runs: [
      { label: 'no limit', args: bench('--scenario auction --tiers 1000,10000 --interval 300ms --repeat 3') },
      {
        label: 'equal budget',
        args: bench('--scenario auction --tiers 10000 --interval 300ms --nodes 2,4 --node-cpus 1,0.5'),
      },
    ],
    dry: '--tiers 20,40 --nodes 2,4 --bids 2 --repeat 1',
    seconds: 190,
    keys: [
      'nodes',
      'nodeCpus',
      'subscribers',
      'latencyMs.p50',
      'latencyMs.p99',
      'growthExponent',
      'deliveryRate',
      'gapCount',
      'duplicateCount',
      'reorderedCount',
      'missingCount',
      'deliveriesPerServerCpuSecond',
      'cpuPerBidMs',
    ],
    ranges: ['latencyMs.p99'],
    fileOnly: ['growthExponent'],
    shows: ({ nodes, subscribers }) => nodes === 1 || subscribers === 10_000,
    measures: LIBRARY,
  },
  'a-fleet-while-things-break': {
    runs: [{ args: bench('--scenario fleet --broker redis,nats,rabbitmq') }],
    dry: '--broker redis --faults kill --users 20 --publishers 2 --ramp 1 --steady 1 --rest 1',
    seconds: 230,
    keys: [
      'target',
      'fault',
      'listensBy',
      'expectedCount',
      'gapCount',
      'duplicateCount',
      'reorderedCount',
      'toldGapCount',
      'retriedCount',
      'deliveryMs',
      'publishMs',
      'reconnectMs.p50',
      'reconnectMs.p99',
      'reconnectMs.max',
      'mostOpenedIn100Ms',
      'latencyMs.p99',
    ],
    fileOnly: ['listensBy', 'reconnectMs.p50', 'reconnectMs.max', 'mostOpenedIn100Ms'],
    shows: ({ listensBy, target }) => listensBy === 'WebSocket' && target.endsWith('+redis'),
    measures: LIBRARY,
  },
  tls: {
    runs: [
      {
        label: 'flood',
        args: bench('--scenario fanout --tls --target webmq-native,uws,ws --tiers 100,1000 --duration 1 --warmup 0.5'),
      },
      {
        label: '100/s',
        args: bench(
          '--scenario paced --tls --target webmq-native,uws --tiers 1000 --rate 100 --duration 3 --warmup 0.5',
        ),
      },
      {
        label: '100/s, plain',
        args: bench('--scenario paced --target webmq-native,uws --tiers 1000 --rate 100 --duration 3 --warmup 0.5'),
      },
    ],
    dry: '--tiers 10 --duration 0.2 --repeat 1',
    seconds: 150,
    keys: ['target', 'subscribers', COST, 'deliveriesPerSecond', 'gapCount', 'serverRssBytes'],
    ranges: [COST],
    beside: { key: COST, targets: ['uws', 'ws'], same: ['label', 'subscribers'] },
    shows: ({ subscribers }) => subscribers === 1_000,
    measures: SERVER,
  },
  'other-transports': {
    runs: [
      {
        args: bench(
          '--scenario fanout --target webmq-uws,uws,webmq-ws,ws,socketio --tiers 100,1000 --duration 1 --warmup 0.5 --repeat 3',
        ),
      },
    ],
    dry: '--tiers 10 --duration 0.2 --repeat 1',
    seconds: 130,
    keys: FLOOD,
    ranges: [COST],
    beside: { key: COST, targets: ['uws', 'ws', 'socketio'], same: ['subscribers'] },
    fileOnly: ['deliveriesPerSecond'],
    shows: ({ subscribers }) => subscribers === 1_000,
    measures: SERVER,
  },
  'real-clients-over-brokers': {
    runs: [
      {
        args: bench(
          '--scenario brokers --clients-by generator --brokers rabbitmq,redis --warmup 2 --duration 3 --repeat 1',
        ),
      },
    ],
    dry: '--brokers redis --sizes 10x1 --warmup 0.3 --duration 0.5',
    seconds: 150,
    keys: [
      'target',
      'subscribers',
      'backends',
      'latencyMs.p50',
      'latencyMs.p95',
      'latencyMs.p99',
      'deliveriesPerSecond',
      'gapCount',
      'duplicateCount',
      'reorderedCount',
      'serverCpuSeconds',
      'brokerCpuSeconds',
      'verdict',
    ],
    fileOnly: ['latencyMs.p95'],
    shows: ({ subscribers, backends }) => subscribers === 100 || backends === 4,
    measures: NODES,
  },
  everyday: {
    runs: [{ args: bench('--scenario everyday --clients 200 --backends 2 --warmup 15 --duration 5 --repeat 2') }],
    dry: '--brokers memory --clients 10 --warmup 0.3 --duration 0.5 --repeat 1',
    seconds: 500,
    keys: [
      'target',
      'mode',
      'serverCpuUsPerDelivery',
      'byHandRatio',
      'latencyMs.p50',
      'latencyMs.p99',
      'deliveriesPerSecond',
      'deliveredRatio',
      'publishErrorCount',
      'brokerCpuSeconds',
      'generatorCpuSeconds',
    ],
    ranges: ['serverCpuUsPerDelivery'],
    fileOnly: ['deliveredRatio', 'brokerCpuSeconds', 'generatorCpuSeconds'],
    measures: NODES,
  },
  overload: {
    runs: ['rabbitmq', 'redis', 'nats'].map((broker) => ({ args: bench(`--scenario overload --broker ${broker}`) })),
    dry: '--loads 2 --faults none --clients 10 --settle 0.5 --window 1',
    seconds: 560,
    keys: [
      'target',
      'fault',
      'load',
      'offeredPerSecond',
      'ackedPerSecond',
      'goodput',
      'refusedCount',
      'mostRefusals',
      'failedCount',
      'latencyMs.p50',
      'latencyMs.p99',
      'normalMs',
      'idealMs',
      'normalRatio',
    ],
    fileOnly: ['offeredPerSecond', 'latencyMs.p50', 'normalMs', 'idealMs'],
    shows: ({ load }) => [0.7, 3].includes(load),
    measures: LIBRARY,
  },
  'many-clients-that-listen-and-publish': {
    runs: [{ args: bench('--duration 8') }, { args: bench('--clients 400 --duration 8') }],
    dry: '--clients 10 --duration 0.5 --warmup 0.2',
    seconds: 40,
    keys: [
      'subscribers',
      'latencyMs.p50',
      'latencyMs.p95',
      'latencyMs.p99',
      'latencyMs.max',
      'deliveriesPerSecond',
      'gapCount',
      'duplicateCount',
      'reorderedCount',
      'serverCpuSeconds',
      'verdict',
    ],
    measures: LIBRARY,
  },
  'memory-of-an-idle-connection': {
    runs: [
      { args: bench('--scenario idle --target webmq-native,webmq-uws,uws,ws --tiers 18000 --duration 1 --repeat 1') },
    ],
    dry: '--tiers 50 --duration 0.2',
    seconds: 50,
    keys: ['target', 'subscribers', 'bytesPerConnection', 'baselineRssBytes'],
    measures: ENGINE,
  },
  'the-most-connections': {
    runs: [{ args: bench('--scenario limit --tiers 10000 --backends 3 --max 57000') }],
    dry: '--tiers 100 --max 200',
    seconds: 70,
    keys: ['maxConnections', 'connectsPerSecond', 'serverRssBytes', 'limitReason'],
    measures: ENGINE,
  },
  'a-publish-beside-patterns-that-do-not-match': {
    runs: [{ args: bench('--scenario wildcard --repeat 1') }],
    dry: '--tiers 100 --publishes 2000',
    seconds: 90,
    keys: ['patterns', 'publishNs', 'matchCostRatio', 'cachedPublishNs', 'bytesPerPattern'],
    measures: SERVER,
  },
  'a-long-replay-beside-live-messages': {
    runs: [
      { args: bench('--scenario replay --repeat 1 --duration 3') },
      {
        args: bench(
          '--scenario replay --messages 20000 --payload 300 --listens 1,5 --tiers 10 --windows 1 --duration 1 --repeat 3',
        ),
      },
    ],
    dry: '--messages 500 --duration 0.3 --windows 1 --tiers 5 --repeat 1',
    seconds: 80,
    keys: [
      'messages',
      'listens',
      'replayedPerSecond',
      'replayMs.p50',
      'addedP99Ms',
      'publishMs.p50',
      'publishMs.max',
      'gapCount',
      'disorderCount',
      'fullRssBytes',
      'serverPeakRssBytes',
    ],
    measures: [...NODES, 'packages/server/src/kernel/replay'],
  },
  'two-io-threads': {
    runs: [
      {
        args: bench(
          '--scenario fanout --target webmq-native:1,webmq-native:2 --tiers 1000 --duration 1.5 --warmup 0.5',
        ),
      },
    ],
    dry: '--tiers 10 --duration 0.2 --repeat 1',
    seconds: 30,
    keys: ['target', 'subscribers', COST, 'deliveriesPerSecond', 'gapCount'],
    ranges: [COST],
    measures: SERVER,
  },
  formats: {
    runs: [{ args: bench('--scenario formats --tiers 100 --duration 1 --target webmq-native') }],
    dry: '--tiers 10 --duration 0.2 --repeat 1',
    seconds: 80,
    keys: ['target', 'mode', 'messageBytes', 'receivedPerServerCpuSecond', 'receivedPerSecond', 'gapCount'],
    ranges: ['receivedPerServerCpuSecond'],
    measures: SERVER,
  },
  'what-a-client-spends': {
    runs: [{ args: program('browser/node.mjs --per-second 5000 --rounds 3 --seconds 2') }],
    dry: '--per-second 500 --rounds 1 --seconds 1',
    seconds: 110,
    keys: ['target', 'cpuUs', 'ofBare', 'messagesPerSecond'],
    ranges: ['cpuUs'],
    measures: ['packages/client/src'],
  },
  'event-streams': {
    runs: [{ args: program('figures/sse.mjs --readers 5000 --runs 3') }],
    dry: '--readers 20 --runs 1',
    seconds: 90,
    keys: ['target', 'subscribers', COST],
    ranges: [COST],
    measures: ENGINE,
  },
  'slow-readers-with-latest': {
    runs: [{ args: program('figures/latest.mjs --others 100 --seconds 8') }],
    dry: '--others 5 --seconds 1',
    seconds: 25,
    keys: ['subscribers', 'lagMs.p50', 'lagMs.p99', 'lagMs.max', 'keyCount', 'withLastValue', 'outOfOrder'],
    measures: ENGINE,
  },
  hold: {
    runs: [{ args: bench('--scenario hold --tiers 10000 --duration 30 --target webmq-native') }],
    dry: '--tiers 20 --duration 1 --ping-interval 0.5',
    seconds: 40,
    keys: [
      'subscribers',
      'survivalRatio',
      'pingCount',
      'latencyMs.p50',
      'latencyMs.p95',
      'latencyMs.p99',
      'missingCount',
      'serverCpuShare',
    ],
    measures: ENGINE,
  },
}
