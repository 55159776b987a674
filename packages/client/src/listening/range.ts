import { invalid } from '../options.js'
import { WebMQError } from '../protocol/errors.js'
import { isPosition } from '../protocol/fields.js'
import type { Start } from './requests.js'

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Converts a duration to milliseconds: a number of milliseconds, or a whole number with `ms`, `s`, `m`, `h` or `d`.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function parseDuration(duration: number | string): number {
  const [, count, unit] = /^(\d{1,15})(ms|[smhd])$/.exec(`${duration}`) ?? []
  const ms = unit ? Number(count) * UNITS[unit as keyof typeof UNITS] : duration
  if (isCount(ms)) return ms
  throw invalid(`rewind ${duration}`)
}

/** Whether it is a count that fits into a header: at most 15 digits [P-2.6]. */
export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 1e15
}

/** Options of a listen or a history read that say where it starts. */
interface RangeOptions {
  readonly since?: string | undefined
  readonly last?: number | undefined
  readonly rewind?: number | string | undefined
}

/**
 * Checks where to start.
 * @throws {WebMQError} `E_OPTION_INVALID`, `E_POSITION_INVALID`, naming the option.
 */
export function rangeOf({ since, last, rewind }: RangeOptions): Start {
  if ([since, last, rewind].filter((option) => option !== undefined).length > 1) {
    throw invalid('at most one of since, last and rewind')
  }
  if (since !== undefined && !isPosition(since)) {
    throw new WebMQError('E_POSITION_INVALID', { detail: `since '${since}'` })
  }
  if (last !== undefined && !isCount(last)) throw invalid(`last ${last}`)
  return { since, last, rewindMs: rewind === undefined ? undefined : parseDuration(rewind) }
}
