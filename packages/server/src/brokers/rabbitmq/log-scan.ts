import type { AmqpConnection } from './amqp-connection.js'
import { LogConsumer } from './log-consumer.js'
import { LogLife } from './log-life.js'
import type { LogRecord } from './log-record.js'

/** What a look at the log reads. */
export interface LogScanOptions {
  readonly connection: AmqpConnection
  readonly queue: string
  readonly lost: (cause: Error) => void
}

/** What a look at the log has found. */
export interface LogBeginning {
  readonly life: LogLife
  /** Time of the first message that tells one, or of a mark. */
  readonly timeMs: number
}

/**
 * Looks at the log from its beginning, to find its epoch.
 * @param toOffset The offset of a mark with a candidate: it is looked at, at most, up to there.
 * @param isThorough Whether it is looked at up to there in any case, for denials.
 */
export async function scanLog(
  { connection, queue, lost }: LogScanOptions,
  toOffset: number,
  isThorough: boolean,
): Promise<LogBeginning> {
  let life: LogLife | undefined
  let timeMs: number | undefined
  return await readLog({ connection, queue, lost }, 'first', (record) => {
    const { offset, mark, epoch } = record
    life ??= new LogLife(offset)
    timeMs ??= record.timeMs
    if (mark !== undefined) life.marked(mark, offset)
    else if (epoch !== undefined) life.named(epoch)
    const isOver = offset >= toOffset || (life.isKnown && timeMs !== undefined && !isThorough)
    return isOver ? { life, timeMs: timeMs ?? Date.now() } : undefined
  })
}

/** What stands first at this offset or after it. There must be something. */
export async function firstRecord(options: LogScanOptions, offset: number): Promise<LogRecord> {
  return await readLog(options, offset, (record) => record)
}

/** Reads until something is found. */
async function readLog<T>(
  { connection, queue, lost }: LogScanOptions,
  from: number | 'first',
  find: (record: LogRecord) => T | undefined,
): Promise<T> {
  let tellFound: (found: T) => void = () => undefined
  const finding = new Promise<T>((resolve) => {
    tellFound = resolve
  })
  let isFound = false
  const take = (record: LogRecord) => {
    if (isFound) return
    const found = find(record)
    if (found === undefined) return
    isFound = true
    tellFound(found)
  }
  const consumer = await LogConsumer.open(connection, { queue, from, take, lost })
  const found = await finding
  consumer.close()
  return found
}
