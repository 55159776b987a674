import type { Assumptions } from './assumptions.js'
import type { Coefficients } from './coefficients.js'
import { predict } from './predict.js'
import { knownBrokers, short, type TextTable } from './tables.js'
import { WORKLOADS, type Workload } from './workload.js'

/** What another server took for a million connections, by its own publication or measured on a machine of 2 cores. */
interface Peer {
  readonly name: string
  readonly load: string
  /** Busy cores; `null`: not published. */
  readonly cores: number | null
  readonly bytes: number
  readonly source: string
}

const MILLION = 1_000_000
const GIB = 2 ** 30

const CENTRIFUGO_RUN =
  '[its run of a million](https://centrifugal.dev/blog/2020/02/10/million-connections-with-centrifugo)'

const PEERS: readonly Peer[] = [
  {
    name: 'Centrifugo',
    load: 'groups: 500k deliveries/s, 3.3k connects/s',
    // 20 pods of about 2, and 5 Redis of 0.32.
    cores: 41.6,
    bytes: 27e9,
    source: `${CENTRIFUGO_RUN}: 40 + 5 x 0.32 CPU, 27 GB, p99 200 ms`,
  },
  {
    name: 'Centrifugo',
    load: 'connects and pings alone',
    cores: 10.25,
    bytes: 27e9,
    source: `${CENTRIFUGO_RUN}: 10 CPU, 5 % of each Redis`,
  },
  { name: 'Centrifugo', load: 'idle', cores: null, bytes: 44_000 * MILLION, source: '43-45 kB each, measured here' },
  {
    name: 'AnyCable Pro',
    load: 'idle',
    cores: null,
    bytes: 18_000 * MILLION,
    source: '[its documentation](https://docs.anycable.io/overview): 18 KB each, 820,000 on one node',
  },
  {
    name: 'AnyCable 1.3',
    load: 'idle',
    cores: null,
    bytes: (613e6 / 15_000) * MILLION,
    source: '[its documentation](https://docs.anycable.io/pro): 613 MB at 15,000',
  },
  {
    name: 'AnyCable 1.6',
    load: 'idle',
    cores: null,
    bytes: 26_750 * MILLION,
    source: '26-27.5 kB each, measured here',
  },
  {
    name: 'WSE 1.4',
    load: 'idle',
    cores: null,
    bytes: (65e9 / 250_000) * MILLION,
    source: 'its published test: 65 GB at 250,000',
  },
  { name: 'WSE 2.4', load: 'idle', cores: null, bytes: 165 * 1_024 * MILLION, source: '165 KiB each, measured here' },
  {
    name: 'auction of ECS and NATS',
    load: 'one bid per 5 s to 10,000',
    cores: 200,
    bytes: 400 * GIB,
    source: 'its published experiment: 4 x (0.5 vCPU, 1 GB) for 10,000, times 100; cores that are bought, not busy',
  },
]

/** The published load of Centrifugo's run, and the same without messages. */
function loads(): readonly (readonly [string, Workload])[] {
  const groups = WORKLOADS.find(({ name }) => name === 'groups')
  if (groups === undefined) throw new Error('there is a workload of groups')
  return [
    ['groups: 500k deliveries/s, 3.3k connects/s', groups],
    ['connects and pings alone', { ...groups, clientPublishesPerSecond: 0 }],
  ]
}

/** A million connections of ours, predicted, beside those of others; prices by busy cores and memory. */
export function peerTable(coefficients: Coefficients, assumptions: Assumptions): TextTable {
  const price = (cores: number | null, bytes: number) =>
    (cores ?? 0) * assumptions.coreHourPrice + (bytes / GIB) * assumptions.gibHourPrice
  const row = (name: string, load: string, cores: number | null, bytes: number, source: string) => [
    name,
    load,
    cores === null ? '–' : short(cores),
    `${short(bytes)}B`,
    `${price(cores, bytes).toFixed(2)}${cores === null ? ' (memory alone)' : ''}`,
    source,
  ]
  const ours = loads().flatMap(([load, workload]) =>
    knownBrokers(coefficients)
      .filter((kind) => kind !== 'memory')
      .map((kind) => {
        const found = predict({ coefficients, kind, workload, connections: MILLION, assumptions })
        return typeof found === 'string'
          ? [`WebMQ, ${kind}`, load, 'does not fit', '–', '–', 'predicted']
          : row(`WebMQ, ${kind}`, load, found.busyCores, found.memoryBytes, `predicted, ${short(found.nodes)} nodes`)
      }),
  )
  return {
    head: ['System', 'Load', 'Busy cores', 'Memory', 'Price per hour', 'Source'],
    rows: [...ours, ...PEERS.map(({ name, load, cores, bytes, source }) => row(name, load, cores, bytes, source))],
  }
}
