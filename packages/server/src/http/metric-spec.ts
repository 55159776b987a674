import { DURATION_BOUNDS, type HistogramStats } from '../observing/measuring/histogram.js'
import type { ServerStats } from './stats.js'

/** The source of all metrics. */
export interface MetricsSource {
  readonly node: string
  readonly version: string
  readonly broker: string
  readonly stats: ServerStats
}

/** One value of a metric, with its labels. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** Of a histogram: `_bucket`, `_sum` or `_count`. */
  readonly suffix?: string
}

/** One metric, for `/metrics` and `docs/operations.md`. */
export interface MetricSpec {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Names of labels. Label values come from fixed lists, never from keys, patterns or users. */
  readonly labels: readonly string[]
  /** All values of the only label. Each is on the page from the start: an alert on a rate misses the first count of a new series. */
  readonly values?: readonly string[]
  read(source: MetricsSource): readonly Sample[]
}

type NumberMember<Part> = { [Name in keyof Part]: Part[Name] extends number ? Name : never }[keyof Part]

/**
 * Metrics without labels, of one part of the stats: counters, whose names end with `_total`, and gauges. They are absent while
 * the part is.
 * @param rows The help of each name, and the member that holds its value, or a function that reads it.
 */
export function metricsOf<Part extends object>(
  partOf: (stats: ServerStats) => Part | undefined,
  rows: Readonly<Record<string, readonly [help: string, value: NumberMember<Part> | ((part: Part) => number)]>>,
): readonly MetricSpec[] {
  return Object.entries(rows).map(([name, [help, value]]) => ({
    name,
    type: name.endsWith('_total') ? 'counter' : 'gauge',
    help,
    labels: [],
    read: ({ stats }) => {
      const part = partOf(stats)
      if (part === undefined) return []
      return [{ value: typeof value === 'function' ? value(part) : (part[value] as number) }]
    },
  }))
}

/**
 * Counters with one label.
 * @param values All values of the label; absent: `read` returns all of them.
 */
export function labelled(
  name: string,
  help: string,
  label: string,
  read: (stats: ServerStats) => Readonly<Partial<Record<string, number>>>,
  values: readonly string[] = [],
): MetricSpec {
  const zeros = Object.fromEntries(values.map((value) => [value, 0]))
  const samples = (stats: ServerStats) =>
    Object.entries({ ...zeros, ...read(stats) }).map(([key, value = 0]) => ({ labels: { [label]: key }, value }))
  return { name, type: 'counter', help, labels: [label], values, read: ({ stats }) => samples(stats) }
}

/** A histogram of durations for each value of a label, or one without a label. */
export function histogram(
  name: string,
  help: string,
  read: (stats: ServerStats) => HistogramStats | Readonly<Record<string, HistogramStats>>,
  label?: string,
  values: readonly string[] = [],
): MetricSpec {
  const samples = (stats: ServerStats) => {
    const shown = read(stats)
    return isHistogram(shown)
      ? histogramSamples(shown, {})
      : Object.entries(shown).flatMap(([value, one]) => histogramSamples(one, { [label ?? 'name']: value }))
  }
  return {
    name,
    type: 'histogram',
    help,
    labels: label === undefined ? [] : [label],
    values,
    read: ({ stats }) => samples(stats),
  }
}

function isHistogram(stats: HistogramStats | Readonly<Record<string, HistogramStats>>): stats is HistogramStats {
  return Array.isArray(stats.cumulativeCounts)
}

function histogramSamples(
  { cumulativeCounts, count, sumSeconds }: HistogramStats,
  labels: Readonly<Record<string, string>>,
): Sample[] {
  const buckets = cumulativeCounts.map((value, index) => ({
    labels: { ...labels, le: String(DURATION_BOUNDS[index] ?? '+Inf') },
    value,
    suffix: '_bucket',
  }))
  return [...buckets, { labels, value: sumSeconds, suffix: '_sum' }, { labels, value: count, suffix: '_count' }]
}

/** The names of a record; a missing one does not compile. */
export function namesOf<Name extends string>(names: Readonly<Record<Name, true>>): readonly Name[] {
  return Object.keys(names) as Name[]
}
