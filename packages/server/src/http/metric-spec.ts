import { DURATION_BOUNDS, type HistogramStats } from '../observing/measuring/histogram.js'
import type { ServerStats } from './stats.js'

export interface MetricsSource {
  readonly node: string
  readonly version: string
  readonly broker: string
  readonly stats: ServerStats
}

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

/** The value of a metric: one, or one for each value of its label. `undefined`: the metric is absent. */
type Reading = Single | Readonly<Partial<Record<string, Single>>> | undefined
type Single = number | HistogramStats

type Readable<Part> = { [Name in keyof Part]-?: Part[Name] extends Reading ? Name : never }[keyof Part]

/** The member that holds the value, and the help. */
type MemberRow<Part> = `${Readable<Part> & string}: ${string}`

/** The same, with all values of the label if the member may lack some; or the help, and a function that reads the value. */
type MetricRow<Part> =
  | MemberRow<Part>
  | readonly [row: MemberRow<Part>, values: readonly string[]]
  | readonly [help: string, read: (part: Part) => Reading]

/**
 * Metrics of one part of the stats. They are absent while the part is.
 * @param rows By name; `name{label}` has one label.
 * @param type Default: a counter, if the name ends with `_total`, otherwise a gauge.
 */
export function metricsOf<Part extends object>(
  partOf: (stats: ServerStats) => Part | undefined,
  rows: Readonly<Record<string, MetricRow<Part>>>,
  type?: 'histogram',
): readonly MetricSpec[] {
  return Object.entries(rows).map(([key, row]) => {
    const [name = '', label] = key.split(/[{}]/)
    const [text, more] = typeof row === 'string' ? [row, []] : row
    const [, member, ofMember = ''] = /^(\w+): (.*)$/.exec(text) ?? []
    const [help, read, values] =
      typeof more === 'function'
        ? [text, more, []]
        : [ofMember, (part: Part) => part[member as keyof Part] as Reading, more]
    return {
      name,
      type: type ?? (name.endsWith('_total') ? 'counter' : 'gauge'),
      help,
      labels: label === undefined ? [] : [label],
      values,
      read: ({ stats }) => {
        const part = partOf(stats)
        return part === undefined ? [] : samplesOf(read(part), label, values)
      },
    }
  })
}

function samplesOf(reading: Reading, label: string | undefined, values: readonly string[]): readonly Sample[] {
  if (reading === undefined) return []
  if (label === undefined) return singleSamples(reading as Single, {})
  const zeros = Object.fromEntries(values.map((value) => [value, 0]))
  const singles = Object.entries<Single | undefined>({ ...zeros, ...(reading as object) })
  return singles.flatMap(([value, single = 0]) => singleSamples(single, { [label]: value }))
}

function singleSamples(single: Single, labels: Readonly<Record<string, string>>): readonly Sample[] {
  if (typeof single === 'number') return [{ labels, value: single }]
  const { cumulativeCounts, count, sumSeconds } = single
  const buckets = cumulativeCounts.map((value, index) => ({
    labels: { ...labels, le: String(DURATION_BOUNDS[index] ?? '+Inf') },
    value,
    suffix: '_bucket',
  }))
  return [...buckets, { labels, value: sumSeconds, suffix: '_sum' }, { labels, value: count, suffix: '_count' }]
}

/** 1 for one of the names, 0 for the others. */
export function flagged(names: readonly string[], one: string): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name) => [name, name === one ? 1 : 0]))
}

/** The names of a record; a missing one does not compile. */
export function namesOf<Name extends string>(names: Readonly<Record<Name, true>>): readonly Name[] {
  return Object.keys(names) as Name[]
}
