import { UsageError } from './exit-codes.js'

/** The unit of a metric's plain number, and the units that may be written after it. */
export type MetricKind = 'milliseconds' | 'seconds' | 'ratio' | 'bytes' | 'count'

/** The metrics of a scenario, by their name in `--assert`. */
export type MetricKinds = Readonly<Record<string, MetricKind>>

/** Measured values by the same names; `null` when there was nothing to measure. */
export type Metrics = Readonly<Record<string, number | null>>

export interface Assertion {
  /** As it was written. */
  readonly text: string
  readonly metric: string
  readonly operator: Operator
  /** In the metric's own unit. */
  readonly limit: number
}

export interface AssertionResult {
  readonly text: string
  readonly isMet: boolean
  /** `null` when there was nothing to measure. */
  readonly actual: number | string | null
}

export type Operator = '=' | '!=' | '<' | '<=' | '>' | '>='

export const COMPARE: Readonly<Record<Operator, (actual: number, limit: number) => boolean>> = {
  '=': (actual, limit) => actual === limit,
  '!=': (actual, limit) => actual !== limit,
  '<': (actual, limit) => actual < limit,
  '<=': (actual, limit) => actual <= limit,
  '>': (actual, limit) => actual > limit,
  '>=': (actual, limit) => actual >= limit,
}

/** How many of the metric's unit one of the written unit is. */
export const UNITS: Readonly<Record<MetricKind, Readonly<Record<string, number>>>> = {
  milliseconds: { '': 1, us: 0.001, ms: 1, s: 1_000 },
  seconds: { '': 1, us: 0.000_001, ms: 0.001, s: 1 },
  ratio: { '': 1, '%': 0.01 },
  bytes: { '': 1, B: 1, KB: 1_000, MB: 1_000_000, GB: 1_000_000_000, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 },
  count: { '': 1 },
}

const SYNTAX = /^\s*([A-Za-z]\w*)\s*(==|=|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*([A-Za-z%]*)\s*$/

/**
 * Reads `p99<10ms`, `loss=0`, `loss<=0.1%`.
 * @throws {UsageError} that names the fault and the correct form.
 */
export function parseAssertion(text: string, kinds: MetricKinds): Assertion {
  const [, metric = '', operator = '', number = '', unit = ''] = SYNTAX.exec(text) ?? []
  if (metric === '') {
    throw new UsageError(
      `--assert '${text}' is not of the form METRIC OPERATOR NUMBER [UNIT], for example 'loss=0' or 'p99<10ms'`,
    )
  }
  const kind = Object.hasOwn(kinds, metric) ? kinds[metric] : undefined
  if (kind === undefined) {
    throw new UsageError(
      `--assert '${text}': there is no metric '${metric}'; there are ${Object.keys(kinds).join(', ')}`,
    )
  }
  const factor = Object.hasOwn(UNITS[kind], unit) ? UNITS[kind][unit] : undefined
  if (factor === undefined) {
    const known = Object.keys(UNITS[kind]).filter((name) => name !== '')
    const hint = known.length === 0 ? 'takes no unit' : `takes ${known.join(', ')}`
    throw new UsageError(`--assert '${text}': '${metric}' ${hint}, not '${unit}'`)
  }
  return {
    text: text.trim(),
    metric,
    operator: (operator === '==' ? '=' : operator) as Operator,
    limit: Number(number) * factor,
  }
}

/** Checks a run against its conditions. A metric that was not measured meets none. */
export function checkAssertions(assertions: readonly Assertion[], metrics: Metrics): AssertionResult[] {
  return assertions.map(({ text, metric, operator, limit }) => {
    const actual = metrics[metric] ?? null
    return { text, actual, isMet: actual !== null && COMPARE[operator](actual, limit) }
  })
}

export function metricsHelp(kinds: MetricKinds): string {
  const names = Object.entries(kinds).map(([name, kind]) => `${name} (${kind})`)
  return `Metrics for --assert (with =, !=, <, <=, >, >=; units us ms s, %, B KB MB GB KiB MiB GiB):\n  ${names.join(', ')}`
}
