import { checks, type RangeOptions } from '../checks.js'
import type { Start } from './requests.js'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Converts a duration to milliseconds: a number of milliseconds, or a whole number with `ms`, `s`, `m`, `h` or `d`; `NaN` for
 * another text.
 */
export function msOf(duration: number | string): number {
  const [, count, unit = ''] = /^(\d{1,15})(ms|[smhd])$/.exec(`${duration}`) ?? []
  return Number(count ?? (typeof duration === 'number' ? duration : NaN)) * (UNITS[unit] ?? 1)
}

/** Whether it is a count that fits into a header: at most 15 digits [P-2.6]. */
export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 1e15
}

/** Where to start. @throws {WebMQError} `E_OPTION_INVALID`, `E_POSITION_INVALID`, with {@link checks}. */
export function rangeOf(options: RangeOptions): Start {
  checks.range?.(options)
  const { since, last, rewind } = options
  return { since, last, rewindMs: rewind === undefined ? undefined : msOf(rewind) }
}
