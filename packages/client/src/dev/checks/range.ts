import type { RangeOptions } from '../../core/checks.js'
import { isCount, msOf } from '../../core/listening/range.js'
import { invalid } from '../../core/options.js'
import type { ListenOptions, PublishOptions } from '../../core/types.js'
import { WebMQError } from '../../protocol/errors.js'
import { isMessageId, isPosition } from '../../protocol/fields.js'
import type { ListenOverflow } from '../../protocol/messages.js'
import { assertOptions, type OptionKinds } from '../../protocol/option-kinds.js'

/** The options of a listen. */
export const LISTEN = {
  ...{ signal: 'object', since: true, last: true, rewind: true, meta: 'boolean', recover: 'boolean' },
  overflow: ['disconnect', 'drop-oldest', 'latest', 'latest-told'] satisfies ListenOverflow[],
} satisfies OptionKinds<ListenOptions>
const PUBLISH = {
  ...{ id: true, ack: ['broker', 'none'], whenOffline: ['queue', 'reject', 'drop'], signal: 'object' },
  ...{ echo: 'boolean', ephemeral: 'boolean', timeoutMs: 'number' },
} satisfies OptionKinds<PublishOptions>

/** Checks where to start, and the names of the options. */
export function checkRange(options: RangeOptions & ListenOptions): void {
  assertOptions('listen: ', options, LISTEN)
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
  assertOptions('publish: ', options, PUBLISH)
  if (!isMessageId(id)) throw invalid(`id ${id}`)
  if (!(timeoutMs >= 0)) throw invalid(`timeoutMs ${timeoutMs}`)
}
