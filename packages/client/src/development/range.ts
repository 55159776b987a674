import type { RangeOptions } from '../checks.js'
import { isCount, msOf } from '../listening/range.js'
import { invalid } from '../options.js'
import { WebMQError } from '../protocol/errors.js'
import { isMessageId, isPosition } from '../protocol/fields.js'

/** Checks where to start. */
export function checkRange({ since, last, rewind }: RangeOptions): void {
  if ([since, last, rewind].filter((option) => option !== undefined).length > 1) {
    throw invalid('at most one of since, last and rewind')
  }
  if (since !== undefined && !isPosition(since)) {
    throw new WebMQError('E_POSITION_INVALID', { detail: `since '${since}'` })
  }
  if (last !== undefined && !isCount(last)) throw invalid(`last ${last}`)
  if (rewind !== undefined && !isCount(msOf(rewind))) throw invalid(`rewind ${rewind}`)
}

/** Checks the options of a publish. */
export function checkPublish(id: string, timeoutMs: number): void {
  if (!isMessageId(id)) throw invalid(`id ${id}`)
  if (!(timeoutMs >= 0)) throw invalid(`timeoutMs ${timeoutMs}`)
}
