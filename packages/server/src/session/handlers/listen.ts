import { type ListenOverflow, refusalOf, WebMQError } from 'webmq-client/protocol'
import { andThen, isPromise, type MaybePromise } from '../../base/maybe-promise.js'
import { assertMayListen } from '../../identity/access.js'
import type { KeyRules } from '../../patterns/key-rules.js'
import { variantOf } from '../../patterns/variant.js'
import { assertPatternWords } from '../../ports/word-limits.js'
import { isRangeAsked, type Replay, readLog, withLive } from '../../replay/replay.js'
import type { ListenOpening } from '../../routing/listens.js'
import { assertRoom } from '../listen-room.js'
import type { SessionServices } from '../services.js'
import type { Session } from '../session.js'
import type { Handler, MessageOf } from './handler.js'
import { assertMayJoin, listenInGroup, slotNameOf } from './queue-group.js'

/** Clients that are sent on come back within this time, and not all at once. */
const MAX_RETRY_AFTER_MS = 500

/**
 * A `listen` that sends its connection to another node when this one is behind: the client keeps its position, and the
 * other node can serve it [P-8.3].
 */
export function sendingOn(listen: Handler<'listen'>): Handler<'listen'> {
  return (session, services, message, isBinary) => {
    const sendOn = (error: unknown) => {
      if (!(error instanceof WebMQError) || error.code !== 'E_NODE_BEHIND') throw error
      services.measurements.resumes.add('sent-on')
      session.end(error.code, Math.ceil(Math.random() * MAX_RETRY_AFTER_MS))
    }
    try {
      return listen(session, services, message, isBinary)?.catch(sendOn)
    } catch (error) {
      sendOn(error)
    }
  }
}

/**
 * Begins to listen. The connection gets, in this order: the answer, the replayed messages, the live messages. No message
 * of the pattern is missing or comes twice. A long replay takes one request per page; the last one makes the listen live.
 */
export const listen: Handler<'listen'> = (session, services, message) => {
  const name = slotNameOf(message)
  if (name !== undefined) return listenInGroup(session, services, message, name)
  assertMayBegin(session, services, message)
  // Without a log there is nothing to wait for.
  if (!isRangeAsked(message) || !services.broker.capabilities.history) return begin(session, services, message)
  return inTurn(session, services, message, (page, isCurrent) => {
    if (session.isClosed) return
    // A new token may have come while the request waited.
    assertMayBegin(session, services, message)
    if (page.hasMore) answer(session, services, message, page)
    // More messages may be logged before the pattern is bound, so `begin` reads a last page again that took time.
    else return begin(session, services, message, isCurrent ? page : undefined)
  })
}

/** Reads a page when the connection may get one. @param use Its second argument: the page was read in this turn. */
function inTurn(
  session: Session,
  services: SessionServices,
  message: MessageOf<'listen'>,
  use: (page: Replay, isCurrent: boolean) => MaybePromise<void>,
): MaybePromise<void> {
  let isCurrent = true
  const readPage = () => {
    const page = readLog(services.broker, message, message.pattern, session)
    isCurrent = !isPromise(page)
    return page
  }
  return services.replays.read(session, readPage, (page) => use(page, isCurrent))
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_PATTERN_INVALID`, `E_FORBIDDEN`, `E_LISTEN_LIMIT`.
 */
export function assertMayBegin(session: Session, services: SessionServices, message: MessageOf<'listen'>): void {
  const { listens, limits } = session
  const { broker } = services
  const { pattern, meta, state } = message
  const name = slotNameOf(message)
  if (name !== undefined) {
    assertMayJoin(session, services, message, name)
    return
  }
  if (state === true && !broker.capabilities.retained) throw refusalOf('E_UNSUPPORTED', { detail: 'state topics' })
  assertPatternWords(pattern, limits, refusalOf)
  assertMayListen(session, pattern)
  assertMeta(services.metaRules, pattern, meta)
  if (listens.has(pattern)) return
  assertRoom(session, pattern)
}

/** @throws {WebMQError} `E_UNSUPPORTED` when no message of the pattern is stamped. */
export function assertMeta(metaRules: Pick<KeyRules, 'mayCover'>, pattern: string, meta: true | undefined): void {
  if (meta === true && !metaRules.mayCover(pattern))
    throw refusalOf('E_UNSUPPORTED', { detail: `meta: the option meta of the server names no key of ${pattern}` })
}

/** @param page The last page, if it was read in this turn. */
function begin(
  session: Session,
  services: SessionServices,
  message: MessageOf<'listen'>,
  page?: Replay,
): MaybePromise<void> {
  const { broker } = services
  const { listens } = session
  const { pattern } = message
  const opening = listens.open(pattern, variantOf('websocket', overflowOf(services, message), message.meta === true))
  const live = (log: Replay) => goLive(session, services, message, opening, log)
  const fail = (error: unknown): never => {
    opening.abort()
    throw error
  }
  try {
    const done = andThen(opening.bound, () => {
      // A gap before the pattern was bound does not count: nobody was promised those messages.
      opening.buffer.gap = undefined
      if (page !== undefined && !isPromise(opening.bound)) return live(page)
      const isPlain = !isRangeAsked(message) || !broker.capabilities.history
      return isPlain ? andThen(readLog(broker, message, pattern), live) : inTurn(session, services, message, live)
    })
    // With a broker that answers at once, all of this happens before any other message is handled.
    return isPromise(done) ? done.catch(fail) : done
  } catch (error) {
    fail(error)
  }
}

function goLive(
  session: Session,
  services: SessionServices,
  message: MessageOf<'listen'>,
  opening: ListenOpening,
  log: Replay,
): void {
  if (session.isClosed) {
    opening.abort()
    return
  }
  assertMayBegin(session, services, message)
  const { buffer } = opening
  const replay = withLive(log, buffer, isRangeAsked(message))
  const gap = replay.gap ?? buffer.gap
  const isLast = answer(session, services, message, gap === undefined ? replay : { ...replay, gap })
  if (!isLast) {
    opening.abort()
    return
  }
  if (message.since !== undefined)
    services.measurements.resumes.add(replay.gap === undefined && gap === undefined ? 'recovered' : 'gap')
  const isNew = !session.listens.has(message.pattern)
  opening.commit()
  if (isNew) services.observer?.listened?.(session, message.pattern)
}

/** Sends a page; returns whether it was the last one. */
function answer(session: Session, services: SessionServices, message: MessageOf<'listen'>, replay: Replay): boolean {
  const isRecovered = message.since !== undefined && replay.gap === undefined
  const asked = overflowOf(services, message)
  const overflow = asked === 'disconnect' ? undefined : asked
  const isState = message.state === true
  return services.replays.send(session, message, replay, { isRecovered, becomesLive: true, overflow, isState })
}

function overflowOf(
  { overflowRules }: Pick<SessionServices, 'overflowRules'>,
  { overflow, pattern }: MessageOf<'listen'>,
): ListenOverflow {
  return overflow ?? overflowRules.of(pattern)
}
