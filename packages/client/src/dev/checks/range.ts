import type { RangeOptions } from '../../core/checks.js'
import { isCount, msOf } from '../../core/listening/range.js'
import { invalid } from '../../core/options.js'
import type { ListenOptions, PublishOptions } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { isMessageId, isPosition } from '../../protocol/fields.js'
import type { ListenOverflow } from '../../protocol/messages.js'
import { checkNames, namesOf } from '../names.js'

/** The names of the options of a listen. */
export const LISTEN = {
  signal: true,
  since: true,
  last: true,
  rewind: true,
  overflow: true,
  meta: true,
  recover: true,
} as const
const LISTEN_NAMES = namesOf<ListenOptions>(LISTEN)
const PUBLISH_NAMES = namesOf<PublishOptions>({
  id: true,
  ack: true,
  echo: true,
  ephemeral: true,
  timeoutMs: true,
  whenOffline: true,
  signal: true,
})

const OVERFLOWS: Readonly<Record<ListenOverflow, true>> = {
  disconnect: true,
  'drop-oldest': true,
  latest: true,
  'latest-told': true,
}

/** Checks where to start, and the names of the options. */
export function checkRange(options: RangeOptions & ListenOptions): void {
  checkNames('listen: ', options, LISTEN_NAMES)
  const { since, last, rewind, overflow } = options
  if (overflow !== undefined && !Object.hasOwn(OVERFLOWS, overflow)) {
    throw invalid(`overflow ${overflow}: one of ${Object.keys(OVERFLOWS).join(', ')}`)
  }
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
