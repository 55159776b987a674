import { refusalOf } from 'webmq-client/protocol'
import { isPromise } from '../../ports/maybe-promise.js'
import { assertPatternWords, isSearch } from '../../ports/word-limits.js'
import type { ConnectionGroups, QueueGroups, SlotName } from '../../queue-groups/index.js'
import { isRangeAsked } from '../../replay/replay.js'
import type { MessageOf } from './handler.js'
import type { ListenContext } from './listen.js'

/** What a `listen` with a group may use. */
export interface QueueGroupContext {
  readonly groups: Pick<QueueGroups, 'assertSupported'>
  readonly ownGroups: Pick<ConnectionGroups, 'has' | 'join' | 'leave'>
  /** Of its memberships; they do not make a connection larger that has none. */
  readonly groupCounts: Pick<ConnectionGroups, 'size' | 'searchCount'>
}

/** The queue group that a `listen` or `unlisten` names; `undefined` for an ordinary one. */
export function slotNameOf({
  group,
  pattern,
  respond,
}: MessageOf<'listen'> | MessageOf<'unlisten'>): SlotName | undefined {
  return group === undefined ? undefined : { kind: respond === true ? 'respond' : 'listen', group, pattern }
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_PATTERN_INVALID`, `E_FORBIDDEN`, `E_LISTEN_LIMIT`.
 */
export function assertMayJoin(context: ListenContext, message: MessageOf<'listen'>, name: SlotName): void {
  const { listens, limits, groups, ownGroups, groupCounts } = context
  groups.assertSupported()
  const { overflow, meta, state } = message
  if (isRangeAsked(message) || overflow !== undefined || meta === true || state === true) {
    throw refusalOf('E_UNSUPPORTED', { detail: 'a replay, overflow, meta or state of a queue group' })
  }
  assertPatternWords(name.pattern, limits, refusalOf)
  if (!context.mayListen(name.pattern)) throw refusalOf('E_FORBIDDEN', { detail: `listen ${name.pattern}` })
  if (ownGroups.has(name)) return
  const { maxListensPerConnection: max, maxSearchListensPerConnection: maxSearches } = limits
  if (listens.size + groupCounts.size >= max) throw refusalOf('E_LISTEN_LIMIT', { detail: `at most ${max}` })
  context.assertUserListens()
  if (listens.searchCount + groupCounts.searchCount >= maxSearches && isSearch(name.pattern)) {
    const detail = `at most ${maxSearches} with a # before the last word (maxSearchListensPerConnection)`
    throw refusalOf('E_LISTEN_LIMIT', { detail })
  }
}

/** Becomes a member of a queue group. The answer comes once all nodes know it. */
export function listenInGroup(
  context: ListenContext,
  message: MessageOf<'listen'>,
  name: SlotName,
): void | Promise<void> {
  assertMayJoin(context, message, name)
  const isNew = !context.ownGroups.has(name)
  const live = () => {
    if (context.isClosed) return
    if (isNew) context.listened(name.pattern)
    context.reply({ verb: 'ok', id: message.id })
  }
  const joined = context.ownGroups.join(name)
  return isPromise(joined) ? joined.then(live) : live()
}
