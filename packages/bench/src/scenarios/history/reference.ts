import type { ResultRow } from '../../results/result.js'

/** Published figures of other servers on this load; members as in our rows. */
interface Reference {
  readonly target: string
  readonly origin: string
  readonly backends: number
  readonly subscribers: number
  readonly rounds: number
  readonly broadcastMs?: { readonly avg: number; readonly p95: number; readonly med?: number; readonly max?: number }
  readonly historyMs?: { readonly avg: number; readonly p95: number; readonly med?: number; readonly max?: number }
  readonly rttMs?: { readonly avg: number; readonly p95: number; readonly med?: number; readonly max?: number }
  readonly subackMs?: { readonly avg: number; readonly p95: number; readonly max: number }
  readonly connectingMs?: { readonly avg: number; readonly p95: number; readonly max: number }
  readonly iterations?: number
  readonly acksReceived?: number
  readonly broadcastsReceived?: number
  readonly historyReceived?: number
  readonly historyRatio?: number
  readonly serverCpuSecondsPerWindow?: number
  readonly serverPeakRssBytes?: number
}

/** Sources of figures; printed under the table. */
export const ORIGINS = {
  published:
    "AnyCable's own broker benchmark, its machine and its k6 client, in steps of 1 ms; 3 nodes behind Traefik. Its memory broker and embedded NATS; `no history` is Redis pub/sub alone.",
  measured:
    'AnyCable 1.6 and Centrifugo 6.9, memory brokers, one node, on another machine of 2 cores with a native client: CPU seconds of 50 s, memory; 150 users of Centrifugo with a ratio of 0.5 and a rate of 0.7.',
} as const

const trend = (avg: number, med: number, p95: number, max: number) => ({ avg, med, p95, max })
const brief = (avg: number, p95: number, max: number) => ({ avg, p95, max })
const MB = 1_000_000

const published = { origin: ORIGINS.published, subscribers: 1_500, rounds: 20 }
const measured = { origin: ORIGINS.measured, backends: 1, rounds: 4 }

/** As published or measured, without derived values. */
const REFERENCES: readonly Reference[] = [
  {
    ...published,
    target: 'AnyCable memory (published)',
    backends: 1,
    broadcastMs: trend(1.77, 1, 4, 16),
    historyMs: trend(0.93194, 1, 3, 21),
    rttMs: trend(0.58572, 0, 3, 11),
    subackMs: brief(0.07725, 0, 8),
    connectingMs: brief(0.94818, 3.08, 11.82),
    iterations: 3_262,
    acksReceived: 7_157,
    broadcastsReceived: 1_671_812,
    historyReceived: 267_642,
    historyRatio: 1,
  },
  {
    ...published,
    target: 'AnyCable redis (published)',
    backends: 1,
    broadcastMs: trend(2.32, 2, 5, 32),
    historyMs: trend(1.55, 1, 4, 18),
    rttMs: trend(0.86366, 1, 3, 31),
    subackMs: brief(0.11077, 1, 19),
    connectingMs: brief(0.87693, 2.81, 12.09),
    iterations: 3_268,
    acksReceived: 7_181,
    broadcastsReceived: 1_671_940,
    historyReceived: 269_239,
    historyRatio: 1,
  },
  {
    ...published,
    target: 'AnyCable nats (published)',
    backends: 1,
    broadcastMs: trend(2.16, 2, 5, 195),
    historyMs: trend(20.16, 2, 86, 213),
    rttMs: trend(0.93421, 1, 3, 64),
    subackMs: brief(0.09644, 0, 20),
    connectingMs: brief(0.91467, 3, 31.01),
    iterations: 3_266,
    acksReceived: 7_205,
    broadcastsReceived: 1_676_679,
    historyReceived: 268_459,
    historyRatio: 1,
  },
  {
    ...published,
    target: 'AnyCable no history (published)',
    backends: 3,
    broadcastMs: trend(4.13, 3, 10, 43),
    historyMs: trend(0.26691, 0, 1, 17),
    rttMs: trend(2.93, 2, 8, 33),
    subackMs: brief(0.33547, 2, 19),
    connectingMs: brief(4.14, 11.67, 113.94),
    iterations: 3_267,
    acksReceived: 7_198,
    broadcastsReceived: 1_688_013,
    historyReceived: 19,
    historyRatio: 0,
  },
  {
    ...published,
    target: 'AnyCable redis (published)',
    backends: 3,
    broadcastMs: trend(4.21, 3, 10, 44),
    historyMs: trend(1.71, 1, 5, 26),
    rttMs: trend(3.15, 3, 8, 27),
    subackMs: brief(0.13257, 1, 12),
    connectingMs: brief(3.01, 9.54, 30.99),
    iterations: 3_266,
    acksReceived: 7_183,
    broadcastsReceived: 1_673_008,
    historyReceived: 269_789,
    historyRatio: 1,
  },
  {
    ...published,
    target: 'AnyCable nats (published)',
    backends: 3,
    broadcastMs: trend(4.78, 4, 11, 221),
    historyMs: trend(22.44, 3, 92, 237),
    rttMs: trend(1.92, 1, 7, 63),
    subackMs: brief(0.18137, 1, 16),
    connectingMs: brief(3.3, 10.64, 44.94),
    iterations: 3_264,
    acksReceived: 7_206,
    broadcastsReceived: 1_692_092,
    historyReceived: 266_712,
    historyRatio: 1,
  },
  {
    ...measured,
    target: 'AnyCable memory (measured)',
    subscribers: 150,
    broadcastMs: { avg: 0.64, p95: 1.56 },
    historyMs: { avg: 0.26, p95: 0.44 },
    rttMs: { avg: 0.4, p95: 1.25 },
    serverCpuSecondsPerWindow: 1.24,
    serverPeakRssBytes: 31 * MB,
  },
  {
    ...measured,
    target: 'AnyCable memory (measured)',
    subscribers: 1_500,
    broadcastMs: { avg: 2.22, p95: 4.83 },
    historyMs: { avg: 0.99, p95: 2.63 },
    rttMs: { avg: 0.7, p95: 2.71 },
    serverCpuSecondsPerWindow: 17.1,
    serverPeakRssBytes: 85 * MB,
  },
  {
    ...measured,
    target: 'Centrifugo memory (measured)',
    subscribers: 150,
    broadcastMs: { avg: 0.48, p95: 0.86 },
    historyMs: { avg: 0.19, p95: 0.28 },
    rttMs: { avg: 0.47, p95: 0.85 },
    serverCpuSecondsPerWindow: 1.23,
    serverPeakRssBytes: 72 * MB,
  },
  {
    ...measured,
    target: 'Centrifugo memory (measured)',
    subscribers: 1_500,
    broadcastMs: { avg: 2.41, p95: 4.72 },
    historyMs: { avg: 0.25, p95: 0.82 },
    rttMs: { avg: 2.38, p95: 4.72 },
    serverCpuSecondsPerWindow: 12.9,
    serverPeakRssBytes: 165 * MB,
  },
]

/** The rows to print under ours. They are in no file, because this run did not measure them. */
export const REFERENCE_ROWS: readonly ResultRow[] = REFERENCES as unknown as readonly ResultRow[] // Printed by columns; what is absent is a dash.
