import type { RangeOptions } from '../../core/checks.js'
import { isCount, msOf } from '../../core/listening/range.js'
import { invalid } from '../../core/options.js'
import type { ListenOptions, PublishOptions } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { isMessageId, isPosition } from '../../protocol/fields.js'
import { checkNames, namesOf } from './names.js'

const LISTEN_NAMES = namesOf<ListenOptions>({
  signal: true,
  since: true,
  last: true,
  rewind: true,
  overflow: true,
  meta: true,
  recover: true,
})
const PUBLISH_NAMES = namesOf<PublishOptions>({
  id: true,
  ack: true,
  echo: true,
  ephemeral: true,
  timeoutMs: true,
  whenOffline: true,
  signal: true,
})

/** Checks where to start, and the names of the options. */
export function checkRange(options: RangeOptions): void {
  checkNames('listen: ', options, LISTEN_NAMES)
  const { since, last, rewind } = options
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
export function checkPublish(options: object, id: string, timeoutMs: number): void {
  checkNames('publish: ', options, PUBLISH_NAMES)
  if (!isMessageId(id)) throw invalid(`id ${id}`)
  if (!(timeoutMs >= 0)) throw invalid(`timeoutMs ${timeoutMs}`)
}
