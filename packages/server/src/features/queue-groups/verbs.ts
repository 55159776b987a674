import { isKey, refusalOf } from 'webmq-client/protocol'
import { andThen, isPromise } from '../../kernel/base/maybe-promise.js'
import { assertMayListen, assertMayPublish, isListener, isPublisher } from '../../kernel/identity/access.js'
import { assertPatternWords } from '../../kernel/ports/word-limits.js'
import { DEFAULT_WITHIN_MS, MAX_WITHIN_MS, type TakenRequest, WRITERS } from '../../kernel/publishing/requests.js'
import { isRangeAsked } from '../../kernel/replay/replay.js'
import type { FeatureVerbs, MessageOf } from '../../kernel/session/handlers/handler.js'
import { assertRoom } from '../../kernel/session/listen-room.js'
import type { Session } from '../../kernel/session/session.js'
import type { ConnectionGroups } from './connection.js'
import type { GroupName } from './group-message.js'
import type { QueueGroups } from './queue-groups.js'

/** An error is a code and a sentence. */
const MAX_ERROR_BYTES = 2_048

/** The memberships of connections. */
interface Memberships {
  /** MUST NOT be called once the session has closed. */
  of(session: Session): ConnectionGroups
  /** The same of a connection that has used queue groups. */
  known(session: Session): ConnectionGroups | undefined
}

export function groupVerbs(
  groups: QueueGroups,
  memberships: Memberships,
): Pick<FeatureVerbs, 'join' | 'leave' | 'request' | 'reply'> {
  return {
    /** Makes a connection a member of a queue group. The answer comes once all nodes know it. */
    join: {
      ask: (hooks, session, message) => {
        assertMayJoin(groups, session, memberships.of(session), message)
        return andThen(hooks.listen(session, 'listen', message.pattern, false), () => undefined)
      },
      handle: (session, { observer }, message) => {
        const own = memberships.of(session)
        assertMayJoin(groups, session, own, message)
        const name = groupNameOf(message)
        const isNew = !own.has(name)
        if (isNew) session.charge(groups.ofClients.unitsOf(own.client, name))
        const live = () => {
          if (session.isClosed) return
          if (isNew) observer?.listened?.(session, name.pattern)
          session.reply({ verb: 'ok', id: message.id })
        }
        const joined = own.join(name)
        return isPromise(joined) ? joined.then(live) : live()
      },
    },
    leave: {
      handle: (session, { observer }, message) => {
        const { id, pattern } = message
        if (memberships.known(session)?.leave(groupNameOf(message)) !== true)
          throw refusalOf('E_NOT_LISTENING', { detail: pattern })
        session.reply({ verb: 'ok', id })
        observer?.unlistened?.(session, pattern)
      },
    },
    /** Hands a request to one responder. The answer says that one has it; the reply, or an error, follows. */
    request: {
      handle: (session, { publisher }, message, isBinary) => {
        const { id, withinMs = DEFAULT_WITHIN_MS } = message
        const { maxRequestsPerConnection } = session.limits
        if (withinMs < 1 || withinMs > MAX_WITHIN_MS) {
          throw refusalOf('E_MESSAGE_INVALID', { detail: `within is 1 to ${MAX_WITHIN_MS}` })
        }
        if (session.requestCount >= maxRequestsPerConnection) {
          const detail = `${maxRequestsPerConnection} requests wait (maxRequestsPerConnection)`
          throw refusalOf('E_RATE_LIMIT', { detail })
        }
        const asked = publisher.request(session, message, isBinary, withinMs)
        session.requestCount++
        const taken = ({ reply }: TakenRequest) => {
          if (!session.isClosed) session.reply({ verb: 'ok', id })
          void reply.then((outcome) => {
            session.requestCount--
            if (!session.isClosed) memberships.of(session).reply(id, outcome)
          })
        }
        if (!isPromise(asked)) return taken(asked)
        return asked.then(taken, (error: unknown) => {
          session.requestCount--
          throw error
        })
      },
    },
    /** Sends a reply to the requester, and to nobody else. */
    reply: {
      handle: (session, _, { id, isError, payload }, isBinary) => {
        if (typeof payload === 'string') throw new TypeError('a decoded payload is bytes')
        assertReplyFits(session, payload.length, isError)
        const member = memberships.known(session)
        if (member === undefined || !groups.requests.reply(member, id, { payload, isBinary, isError })) {
          throw refusalOf('E_TIMEOUT', { detail: 'nobody waits for this reply' })
        }
      },
    },
  }
}

function groupNameOf({ group = '', pattern, respond }: MessageOf<'listen'> | MessageOf<'unlisten'>): GroupName {
  return { kind: respond === true ? 'respond' : 'listen', group, pattern }
}

/** Whether the grants of a session allow a membership. */
export function mayJoin(session: Session, name: GroupName): boolean {
  return isListener(session, name.pattern) && (!isOfWriters(name) || isPublisher(session, name.pattern))
}

/** Its members answer for whoever writes a stream at the key [P-18.7]. */
function isOfWriters({ kind, group }: GroupName): boolean {
  return kind === 'respond' && group === WRITERS
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_PATTERN_INVALID`, `E_FORBIDDEN`, `E_LISTEN_LIMIT`.
 */
function assertMayJoin(
  groups: QueueGroups,
  session: Session,
  own: ConnectionGroups,
  message: MessageOf<'listen'>,
): void {
  groups.assertSupported()
  const { overflow, meta, state, pattern } = message
  if (isRangeAsked(message) || overflow !== undefined || meta === true || state === true) {
    throw refusalOf('E_UNSUPPORTED', { detail: 'a replay, overflow, meta or state of a queue group' })
  }
  assertPatternWords(pattern, session.limits, refusalOf)
  assertMayListen(session, pattern)
  const name = groupNameOf(message)
  if (isOfWriters(name)) {
    if (!isKey(pattern)) throw refusalOf('E_PATTERN_INVALID', { detail: `${pattern}: a stream is written at a key` })
    assertMayPublish(session, pattern)
  }
  if (!own.has(name)) assertRoom(session, pattern)
}

/** @throws {WebMQError} `E_PAYLOAD_TOO_LARGE`. */
function assertReplyFits(session: Session, byteCount: number, isError: boolean): void {
  const { maxPayloadBytes } = session.limits
  if (byteCount > maxPayloadBytes) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', { detail: `${byteCount} bytes, at most ${maxPayloadBytes}` })
  }
  if (isError && byteCount > MAX_ERROR_BYTES) {
    throw refusalOf('E_PAYLOAD_TOO_LARGE', { detail: `an error of ${byteCount} bytes, at most ${MAX_ERROR_BYTES}` })
  }
}
