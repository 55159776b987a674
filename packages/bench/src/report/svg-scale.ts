/** Kinds of axes. */
export type ScaleKind = 'linear' | 'log'

/** Places values along an axis. */
export interface Scale {
  readonly kind: ScaleKind
  /** The place of a value: 0 at the axis' start, 1 at its end. */
  at(value: number): number
  /** Round values to label, ascending, all within the axis. */
  readonly ticks: readonly number[]
}

/** A linear axis aims at this many intervals between labels. */
const LINEAR_INTERVALS = 4
/** Up to this many decades a log axis labels 1, 2 and 5 of each; beyond, only powers of ten. */
const DENSE_DECADES = 2.2
const MANTISSAS = [1, 2, 5]

/** Whether a scale of this kind can show the value: a log scale cannot show zero and below. */
export function isPlottable(kind: ScaleKind, value: number): boolean {
  return Number.isFinite(value) && (kind === 'linear' || value > 0)
}

/**
 * A scale that holds all values: a linear one starts at zero, so that heights compare as the numbers do; a log one ends
 * at round numbers.
 * @param values Those that such a scale cannot show are ignored.
 */
export function createScale(kind: ScaleKind, values: readonly number[]): Scale {
  const plottable = values.filter((value) => isPlottable(kind, value))
  return kind === 'linear' ? linearScale(plottable) : logScale(plottable)
}

/**
 * A scale without margins whose labels are the values themselves: for an axis of tiers.
 * @param values At least one distinct plottable value; the smallest is at 0, the largest at 1, a single one at 0.5.
 */
export function createTierScale(kind: ScaleKind, values: readonly number[]): Scale {
  const ticks = [...new Set(values)].filter((value) => isPlottable(kind, value)).sort((a, b) => a - b)
  const transform = kind === 'log' ? Math.log10 : (value: number) => value
  const low = transform(ticks[0] ?? 1)
  const high = transform(ticks.at(-1) ?? 1)
  return { kind, ticks, at: (value) => (high === low ? 0.5 : (transform(value) - low) / (high - low)) }
}

function linearScale(values: readonly number[]): Scale {
  const step = roundStep(Math.max(...values, 0) / LINEAR_INTERVALS)
  const count = Math.max(1, Math.ceil(Math.max(...values, 0) / step - 1e-9))
  // Multiplied, not summed: 0.1 + 0.2 is not a valid label.
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
  return { kind: 'linear', ticks, at: (value) => value / (count * step) }
}

function logScale(values: readonly number[]): Scale {
  if (values.length === 0) return logScale([1, 10])
  const low = roundOutwards(Math.min(...values), -1)
  const high = roundOutwards(Math.max(...values), 1)
  if (low === high) return logScale([low / 2, high * 2])
  const mantissas = Math.log10(high / low) > DENSE_DECADES ? [1] : MANTISSAS
  const ticks: number[] = []
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); decade++) {
    for (const mantissa of mantissas) ticks.push(Number(`${mantissa}e${decade}`))
  }
  const span = Math.log10(high / low)
  return {
    kind: 'log',
    at: (value) => Math.log10(value / low) / span,
    ticks: ticks.filter((tick) => tick >= low && tick <= high),
  }
}

/** The next 1, 2 or 5 times a power of ten below (-1) or above (1). */
function roundOutwards(value: number, direction: -1 | 1): number {
  const decade = Math.floor(Math.log10(value))
  const candidates = [decade - 1, decade, decade + 1].flatMap((power) =>
    MANTISSAS.map((mantissa) => Number(`${mantissa}e${power}`)),
  )
  // The factors compensate rounding errors of logarithms.
  return direction === -1
    ? Math.max(...candidates.filter((candidate) => candidate <= value * 1.000_001))
    : Math.min(...candidates.filter((candidate) => candidate >= value * 0.999_999))
}

/** The smallest of 1, 2, 2.5, 5 times a power of ten that is not below. */
function roundStep(atLeast: number): number {
  if (!(atLeast > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(atLeast))
  const factor = [1, 2, 2.5, 5].find((candidate) => candidate * power >= atLeast * 0.999_999) ?? 10
  return factor * power
}
