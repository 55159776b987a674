import { refusalOf } from 'webmq-client/protocol'
import type { SlotName } from '../../../features/queue-groups/index.js'
import { isPromise } from '../../base/maybe-promise.js'
import { assertMayListen } from '../../identity/access.js'
import { assertPatternWords } from '../../ports/word-limits.js'
import { isRangeAsked } from '../../replay/replay.js'
import { assertRoom } from '../listen-room.js'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'
import type { MessageOf } from './handler.js'

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
export function assertMayJoin(
  session: Session,
  { groups }: SessionServices,
  message: MessageOf<'listen'>,
  name: SlotName,
): void {
  const { limits, ownGroups } = session
  groups.assertSupported()
  const { overflow, meta, state } = message
  if (isRangeAsked(message) || overflow !== undefined || meta === true || state === true) {
    throw refusalOf('E_UNSUPPORTED', { detail: 'a replay, overflow, meta or state of a queue group' })
  }
  assertPatternWords(name.pattern, limits, refusalOf)
  assertMayListen(session, name.pattern)
  if (!ownGroups.has(name)) assertRoom(session, name.pattern)
}

/** Becomes a member of a queue group. The answer comes once all nodes know it. */
export function listenInGroup(
  session: Session,
  services: SessionServices,
  message: MessageOf<'listen'>,
  name: SlotName,
): void | Promise<void> {
  assertMayJoin(session, services, message, name)
  const isNew = !session.ownGroups.has(name)
  const live = () => {
    if (session.isClosed) return
    if (isNew) services.observer?.listened?.(session, name.pattern)
    session.reply({ verb: 'ok', id: message.id })
  }
  const joined = session.ownGroups.join(name)
  return isPromise(joined) ? joined.then(live) : live()
}
