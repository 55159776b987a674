import { WebMQError } from '../protocol/index.js'

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Converts a duration to milliseconds: a number of milliseconds, or a whole number with `ms`, `s`, `m`, `h` or `d`.
 * @throws {WebMQError} `E_OPTION_INVALID`.
 */
export function parseDuration(duration: number | string): number {
  const [, count, unit] = /^(\d{1,15})(ms|[smhd])$/.exec(`${duration}`) ?? []
  const ms = unit ? Number(count) * UNITS[unit as keyof typeof UNITS] : duration
  if (Number.isSafeInteger(ms) && Number(ms) >= 0) return Number(ms)
  throw new WebMQError('E_OPTION_INVALID', { detail: `duration ${duration}: milliseconds, or a string such as '2m'` })
}
