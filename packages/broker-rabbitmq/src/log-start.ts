import type { Position } from 'webmq-server/ports'
import type { EpochWriter } from './epoch-writer.js'
import { type LogReadOptions, readLog, scanLog } from './log-consumer.js'
import type { LogCursor } from './log-cursor.js'
import { LogEpoch } from './log-epoch.js'
import type { RestartMark } from './log-marks.js'

/** Where a link begins to follow the log. */
interface LogStart {
  readonly offset: number
  readonly epoch: LogEpoch
  readonly isContinued: boolean
}

/** Writes an epoch record; everything that was logged before the call stands before it. */
export async function findStart(
  log: LogReadOptions,
  records: EpochWriter,
  mark: RestartMark,
  cursor: LogCursor,
  after: Position | undefined,
): Promise<{ start: LogStart; untilOffset: number }> {
  const untilOffset = await records.locate()
  const state = after === undefined ? 'unknown' : await compare(log, cursor, after, untilOffset)
  if (state === 'same') {
    const offset = cursor.seenOffset + 1
    const epoch = new LogEpoch(offset, cursor.epoch)
    return { start: { offset, epoch, isContinued: true }, untilOffset }
  }
  if (state === 'unknown') return { start: await begin(log, cursor, untilOffset, false), untilOffset }
  const denied = await records.locate(cursor.epoch)
  await mark.remove(cursor.epoch)
  return { start: await begin(log, cursor, denied, true), untilOffset: denied }
}

async function begin(log: LogReadOptions, cursor: LogCursor, toOffset: number, isThorough: boolean): Promise<LogStart> {
  const { epoch, timeMs } = await scanLog(log, toOffset, isThorough)
  const offset = epoch.sinceOffset
  cursor.timeMs = timeMs
  return { offset, epoch: new LogEpoch(offset, epoch.name), isContinued: false }
}

/** Compares the log with the cursor: the same log, another one, or unknown because the anchor has aged out. */
async function compare(
  log: LogReadOptions,
  cursor: LogCursor,
  after: Position,
  untilOffset: number,
): Promise<'same' | 'unknown' | 'another'> {
  const { anchorOffset, epoch, seenOffset } = cursor
  if (anchorOffset === undefined || epoch !== after.epoch) return 'unknown'
  if (untilOffset <= seenOffset) return 'another'
  // The first one there or after it: there is one.
  const { offset, delivery, epochRecord } = await readLog(log, anchorOffset, (record) => record)
  if (offset > anchorOffset) return 'unknown'
  return cursor.isAnchor(delivery?.source, epochRecord?.nonce) ? 'same' : 'another'
}
