import type { LatencyBars } from '../measure/latency-histogram.js'
import type { MachineInfo } from '../measure/machine.js'
import type { AssertionResult } from '../scenario.js'

/**
 * How a column's values are written for people. Files hold plain numbers in the column's `unit`, whatever the format.
 *
 * `count`: whole number with separators · `rate`: short, per second (1.2M/s) · `number`: three significant digits ·
 * `ms`: duration in milliseconds · `seconds` · `bytes` · `bytesPerSecond` · `ratio`: 2.5x · `percent`: a share from
 * 0 to 1 · `text`: as it is.
 */
export type ColumnFormat =
  | 'text'
  | 'count'
  | 'rate'
  | 'number'
  | 'ms'
  | 'seconds'
  | 'bytes'
  | 'bytesPerSecond'
  | 'ratio'
  | 'percent'

export interface ResultColumn {
  /** Where the value is in a row; a dot goes one level down: `latencyMs.p99`. Read it with {@link cellOf}. */
  readonly key: string
  readonly title: string
  /** Of the plain number: `1/s`, `ms`, `s`, `B`, `B/s`; empty for counts, ratios and text. */
  readonly unit: string
  readonly format: ColumnFormat
  /** Which direction is good; absent where neither is (identity, settings). For comparisons and colours. */
  readonly better?: 'higher' | 'lower'
  /** Which of the repeats is in the row: losses must not hide behind a median. Absent: the median. */
  readonly repeats?: 'max' | 'min'
}

/** The value of a cell; `null`: not measured, or without meaning here. */
export type Cell = string | number | null

/** The percentiles of one distribution, in milliseconds. */
export interface LatencyMs {
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly p999?: number | null
  readonly p9999?: number | null
  readonly max: number | null
}

/**
 * Whether the figures are the server's. `generator saturated`: the load generator was the limit, so the figures are its
 * own. `machine saturated`: all cores were busy, so latencies are the machine's. `lost messages`: published messages did not
 * arrive, or not in order. `server saturated`: the server did not keep up with the offered load; `broker saturated`: the broker
 * behind it did not. `publishes failed`: the server refused publishes, or did not answer them. `failed`: no figures,
 * `verdictReason` says why.
 */
export type RowVerdict =
  | 'ok'
  | 'machine saturated'
  | 'generator saturated'
  | 'lost messages'
  | 'server saturated'
  | 'broker saturated'
  | 'publishes failed'
  | 'failed'

/** Whether rates and latencies may be those of the generator or the machine, while costs are the server's. */
export function isDoubtful(verdict: RowVerdict): boolean {
  return verdict === 'generator saturated' || verdict === 'machine saturated'
}

/**
 * Whether a figure says anything about the server. With lost messages or refused publishes none does: fewer messages cost
 * less. Of a load that was not carried only costs do: its latencies are the length of a queue, or the machine's.
 * @param key Of the column.
 */
export function isSound(verdict: RowVerdict, key: string): boolean {
  if (verdict === 'ok') return true
  return /cpu/i.test(key) && !UNMEASURED.includes(verdict)
}

const UNMEASURED: readonly RowVerdict[] = ['failed', 'lost messages', 'publishes failed']

export interface Spread {
  readonly min: number
  readonly max: number
}

/**
 * One line of the table: the medians over all repeats of one target at one tier. The members every scenario has are
 * `null` where the scenario does not measure them; a scenario adds members of its own.
 */
export interface ResultRow {
  readonly target: string
  readonly mode: string
  /** Connections. */
  readonly subscribers: number
  readonly publishedPerSecond: number | null
  readonly deliveriesPerSecond: number | null
  /** Payload bytes that arrived, per second. */
  readonly bytesPerSecond: number | null
  /** Messages that a connection should have received and did not. */
  readonly gapCount: number | null
  readonly duplicateCount: number | null
  /** User and system time of all threads of the server. */
  readonly serverCpuSeconds: number | null
  readonly deliveriesPerServerCpuSecond: number | null
  readonly serverRssBytes: number | null
  /** `null` in a flood, where it would only show the length of the queue. */
  readonly latencyMs: LatencyMs | null
  /** How late timers fired in the server's event loop; `null` for a server that has none. */
  readonly serverEventLoopLagMs: LatencyMs | null
  /** User and system time of the load generator. */
  readonly generatorCpuSeconds: number | null
  /** Of the time the load lasted, the busiest generator's share of one core, 0 to 1. */
  readonly generatorUtilization: number | null
  /** The worst of the repeats. */
  readonly verdict: RowVerdict
  /** As a sentence; `null` when the verdict is `ok`. */
  readonly verdictReason: string | null
  /** Repeats behind the medians. */
  readonly repeatCount: number
  /** By column key, for every column of numbers that was measured; only in rows of medians. */
  readonly spread: Readonly<Record<string, Spread>>
  readonly [key: string]: unknown
}

/** Values over the time of one run: a line of a plot. */
export interface ResultSeries {
  readonly target: string
  readonly subscribers: number
  /** Further values that identify its row, by column key: `{ mode: 'flood', ratePerSecond: 100 }`. */
  readonly condition?: Readonly<Record<string, number | string>>
  /** 1 is the first. */
  readonly repeat: number
  /** Name of the values: `deliveries`. */
  readonly title: string
  readonly unit: string
  readonly format: ColumnFormat
  readonly points: readonly { readonly atMs: number; readonly value: number }[]
}

/** A run over time: several plots below each other, over the same seconds, with marked spans. */
export interface ResultTimeline {
  readonly title: string
  /** Time between two values. The first one is of the end of the first step. */
  readonly stepMs: number
  /** Spans in which something happened, such as a fault. */
  readonly bands: readonly { readonly label: string; readonly fromMs: number; readonly toMs: number }[]
  readonly panels: readonly TimelinePanel[]
}

export interface TimelinePanel {
  readonly title: string
  readonly unit: string
  readonly format: ColumnFormat
  /** `null`: nothing was measured in this step. */
  readonly lines: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

/** How the values of one run are spread. */
export interface ResultDistribution {
  /** `Latency`. */
  readonly title: string
  readonly bars: LatencyBars
  /** Values to mark, such as percentiles. */
  readonly marks: readonly { readonly label: string; readonly atMs: number }[]
}

/** One figure by another, as lines. */
export interface ResultCurve {
  readonly title: string
  /** Titles of the axes. Values are multiples of something that the titles name; both axes begin at 0. */
  readonly x: string
  readonly y: string
  readonly lines: readonly {
    readonly name: string
    /** Not measured: the other lines are compared with it. */
    readonly isReference: boolean
    /** In the order of `x`. */
    readonly points: readonly { readonly x: number; readonly y: number }[]
  }[]
}

/** The result of a scenario of targets and tiers: everything to print, plot or compare. */
export interface ScenarioResult {
  readonly scenario: string
  /** In the order of the table. The first ones identify a row, see `identity`. */
  readonly columns: readonly ResultColumn[]
  /**
   * Keys of the columns that identify a row, such as `target`, `mode`, `subscribers`. `compare` matches rows by them.
   */
  readonly identity: readonly string[]
  /** Medians: one row per target and tier. */
  readonly rows: readonly ResultRow[]
  /** Every single measurement in order, with `repeat` and `order`; `spread` is empty. */
  readonly runs: readonly ResultRow[]
  readonly series?: readonly ResultSeries[]
  readonly timelines?: readonly ResultTimeline[]
  readonly curves?: readonly ResultCurve[]
  readonly distributions?: readonly ResultDistribution[]
  readonly notes: readonly string[]
}

/** A result with everything needed to reproduce it, as written to files. */
export interface ResultRecord extends ScenarioResult {
  readonly command: string
  readonly machine: MachineInfo
  readonly config: Readonly<Record<string, unknown>>
  readonly versions: Readonly<Record<string, string>>
  readonly assertions: readonly AssertionResult[]
}

/** The value of a column in a row; `null` when it was not measured. */
export function cellOf(row: object, key: string): Cell {
  let value: unknown = row
  for (const part of key.split('.')) {
    if (typeof value !== 'object' || value === null) return null
    value = (value as Readonly<Record<string, unknown>>)[part]
  }
  return typeof value === 'number' || typeof value === 'string' ? value : null
}
