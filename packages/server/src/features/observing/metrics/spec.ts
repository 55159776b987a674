import type { HistogramStats } from '../measuring/histogram.js'

export interface Sample {
  /** Name of the series, with its labels. */
  readonly series: string
  readonly value: number
}

export type MetricType = 'counter' | 'gauge' | 'histogram'

/** One metric, for `/metrics` and `docs/operations.md`. @typeParam Source Object that has the value. */
export interface MetricSpec<Source> {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  /** Names of labels. Label values come from fixed lists, never from keys, patterns or users. */
  readonly labels: readonly string[]
  /** All values of the only label. Each is on the page from the start: an alert on a rate misses the first count of a new series. */
  readonly values?: readonly string[]
  read(source: Source): readonly Sample[]
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

/** Metrics by name; `name{label}` has one label. */
export type MetricRows<Part> = Readonly<Record<string, MetricRow<Part>>>

/**
 * Metrics of one part of a source. They are absent while the part is.
 * @param type Default: a counter, if the name ends with `_total`, otherwise a gauge.
 */
export function metricsFrom<Source, Part extends object>(
  partOf: (source: Source) => Part | undefined,
  rows: MetricRows<Part>,
  type?: MetricType,
): readonly MetricSpec<Source>[] {
  return Object.entries(rows).map(([key, row]) => {
    const [name = '', label] = key.split(/[{}]/)
    const [text, more] = typeof row === 'string' ? [row, []] : row
    const [, member, ofMember = ''] = /^(\w+): (.*)$/.exec(text) ?? []
    const [help, read, values] =
      typeof more === 'function'
        ? [text, more, []]
        : [ofMember, (part: Part) => part[member as keyof Part] as Reading, more]
    const samplesOf = sampler(name, label, values)
    return {
      name,
      type: type ?? (name.endsWith('_total') ? 'counter' : 'gauge'),
      help,
      labels: label === undefined ? [] : [label],
      values,
      read: (source) => {
        const part = partOf(source)
        return part === undefined ? [] : samplesOf(read(part))
      },
    }
  })
}

/**
 * Makes samples of readings. The names of series are made once: they are most of the work, and a page has hundreds.
 * @param values All values of the label that are there from the start. Others come from fixed lists as well.
 */
function sampler(
  name: string,
  label: string | undefined,
  values: readonly string[],
): (reading: Reading) => readonly Sample[] {
  const namesByValue = new Map<string, SeriesNames>()
  const namesOf = (value: string): SeriesNames => {
    const known = namesByValue.get(value)
    if (known !== undefined) return known
    const names = seriesNames(name, label === undefined ? {} : { [label]: value })
    namesByValue.set(value, names)
    return names
  }
  const isExpected = new Set(values)
  return (reading) => {
    if (reading === undefined) return []
    const samples: Sample[] = []
    if (label === undefined) {
      addSamples(reading as Single, namesOf(''), samples)
      return samples
    }
    const singles = reading as Readonly<Partial<Record<string, Single>>>
    for (const value of values) addSamples(singles[value] ?? 0, namesOf(value), samples)
    for (const value in singles) if (!isExpected.has(value)) addSamples(singles[value] ?? 0, namesOf(value), samples)
    return samples
  }
}

/** Names of the series of one value. */
interface SeriesNames {
  readonly ofNumber: string
  /** The buckets, the sum, the count; made for the first histogram. */
  readonly ofHistogram: (bounds: readonly number[]) => readonly string[]
}

function seriesNames(name: string, labels: Readonly<Record<string, string>>): SeriesNames {
  let ofHistogram: readonly string[] | undefined
  const bucket = (le: string) => seriesName(`${name}_bucket`, { ...labels, le })
  const histogram = (bounds: readonly number[]) => [
    ...[...bounds, '+Inf'].map((bound) => bucket(String(bound))),
    seriesName(`${name}_sum`, labels),
    seriesName(`${name}_count`, labels),
  ]
  return {
    ofNumber: seriesName(name, labels),
    ofHistogram: (bounds) => {
      ofHistogram ??= histogram(bounds)
      return ofHistogram
    },
  }
}

/** The name of a series in the text format of Prometheus. */
export function seriesName(name: string, labels: Readonly<Record<string, string>>): string {
  const texts = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`)
  return texts.length === 0 ? name : `${name}{${texts.join(',')}}`
}

function escaped(value: string): string {
  return value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')
}

function addSamples(single: Single, { ofNumber, ofHistogram }: SeriesNames, samples: Sample[]): void {
  if (typeof single === 'number') {
    samples.push({ series: ofNumber, value: single })
    return
  }
  const { bounds, cumulativeCounts, count, sumSeconds } = single
  const values = [...cumulativeCounts, sumSeconds, count]
  for (const [index, series] of ofHistogram(bounds).entries()) samples.push({ series, value: values[index] ?? 0 })
}

/** 1 for one of the names, 0 for the others. */
export function flagged(names: readonly string[], one: string): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name) => [name, name === one ? 1 : 0]))
}

/** The names of a record; a missing one does not compile. */
export function namesOf<Name extends string>(names: Readonly<Record<Name, true>>): readonly Name[] {
  return Object.keys(names) as Name[]
}
