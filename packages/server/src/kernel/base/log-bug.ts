import { LogPace } from './log-pace.js'
import type { Logger } from './logger.js'

/** A line with a stack takes some 2 kB, and whoever finds a way to cause it can do so thousands of times per second. */
const LOG_INTERVAL_MS = 1_000

const paces = new WeakMap<object, Map<string, LogPace>>()

/**
 * Logs a failure that no table of errors knows, at most once per second for each message: the next line counts the `others`.
 * @param message One of a few constants.
 */
export function logBug(logger: Pick<Logger, 'error'>, fields: object, message: string): void {
  logPaced(logger, 'error', fields, message)
}

/** The same at another level, for what may be no bug. */
export function logPaced<Level extends 'warn' | 'error'>(
  logger: Pick<Logger, Level>,
  level: Level,
  fields: object,
  message: string,
): void {
  const others = paceOf(logger, message).take()
  if (others !== undefined) logger[level]({ ...fields, ...(others > 0 && { others }) }, message)
}

function paceOf(logger: object, message: string): LogPace {
  const byMessage = paces.get(logger) ?? new Map<string, LogPace>()
  const pace = byMessage.get(message) ?? new LogPace(LOG_INTERVAL_MS)
  paces.set(logger, byMessage.set(message, pace))
  return pace
}
