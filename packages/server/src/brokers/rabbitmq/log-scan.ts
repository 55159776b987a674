import { type LogReadOptions, readLog } from './log-consumer.js'
import { LogEpoch } from './log-epoch.js'
import type { LogRecord } from './log-record.js'

/** How the log begins. */
export interface LogBeginning {
  readonly epoch: LogEpoch
  /** Time of the first record that tells one. */
  readonly timeMs: number
}

/**
 * Reads the log from its beginning to find its epoch.
 * @param toOffset Offset of an epoch record with a candidate: reading ends there at the latest.
 * @param isThorough Whether reading goes up to there in any case, to find denials.
 */
export function scanLog(options: LogReadOptions, toOffset: number, isThorough: boolean): Promise<LogBeginning> {
  let found: LogEpoch | undefined
  let firstTimeMs: number | undefined
  return readLog(options, 'first', ({ offset, timeMs, epochRecord, epoch }) => {
    found ??= new LogEpoch(offset)
    firstTimeMs ??= timeMs
    if (epochRecord !== undefined) found.recorded(epochRecord, offset)
    else if (epoch !== undefined) found.named(epoch)
    const isOver = offset >= toOffset || (found.isKnown && firstTimeMs !== undefined && !isThorough)
    return isOver ? { epoch: found, timeMs: firstTimeMs ?? Date.now() } : undefined
  })
}

/** The first record at this offset or after it. There must be one. */
export function firstRecord(options: LogReadOptions, offset: number): Promise<LogRecord> {
  return readLog(options, offset, (record) => record)
}
