import { type ListenOverflow, refusalOf } from 'webmq-client/protocol'
import type { ResumeOutcome } from '../../measuring/measurements.js'
import type { MetaRules } from '../../patterns/meta-rules.js'
import type { OverflowRules } from '../../patterns/overflow-rules.js'
import { variantOf } from '../../patterns/variant.js'
import type { Broker } from '../../ports/broker.js'
import { andThen, isPromise, type MaybePromise } from '../../ports/maybe-promise.js'
import type { ConnectionId } from '../../ports/transport.js'
import { assertPatternWords, isSearch, type WordLimits } from '../../ports/word-limits.js'
import { isRangeAsked, type Replay, readLog, withLive } from '../../replay/replay.js'
import type { ReplaySender } from '../../replay/sender.js'
import type { ListenOpening, Listens } from '../../routing/listens.js'
import type { Handler, HandlerContext, MessageOf } from './handler.js'
import { assertMayJoin, listenInGroup, type QueueGroupContext, slotNameOf } from './queue-group.js'

/** What `listen` may use. */
export interface ListenContext extends HandlerContext, QueueGroupContext {
  readonly connection: ConnectionId
  readonly broker: Pick<Broker, 'capabilities' | 'read' | 'position'>
  readonly listens: Pick<Listens, 'has' | 'size' | 'searchCount' | 'open'>
  readonly replays: Pick<ReplaySender, 'read' | 'send'>
  readonly limits: WordLimits & {
    readonly maxListensPerConnection: number
    /** Of these, patterns with a `#` before their last word. */
    readonly maxSearchListensPerConnection: number
  }
  /** What a listen gets when its reader lags, unless it asks for something else. */
  readonly overflowRules: Pick<OverflowRules, 'of'>
  /** Whose messages are stamped. */
  readonly metaRules: Pick<MetaRules, 'mayCover'>
  mayListen(pattern: string): boolean
  /** Whether the user may listen once more. @throws {WebMQError} `E_LISTEN_LIMIT` */
  assertUserListens(): void
  /** A listen with `since` was answered for the last time. */
  resumed(outcome: ResumeOutcome): void
  /** A new listen is live. */
  listened(pattern: string): void
}

/**
 * Begins to listen. The connection gets, in this order: the answer, the replayed messages, the live messages. No message
 * of the pattern is missing or comes twice. A long replay takes one request per page; the last one makes the listen live.
 */
export const listen: Handler<'listen', ListenContext> = (context, message) => {
  const name = slotNameOf(message)
  if (name !== undefined) return listenInGroup(context, message, name)
  assertMayListen(context, message)
  // Without a log there is nothing to wait for.
  if (!isRangeAsked(message) || !context.broker.capabilities.history) return begin(context, message)
  return inTurn(context, message, (page, isCurrent) => {
    if (context.isClosed) return
    // A new token may have come while the request waited.
    assertMayListen(context, message)
    if (page.hasMore) answer(context, message, page)
    // More messages may be logged before the pattern is bound, so `begin` reads a last page again that took time.
    else return begin(context, message, isCurrent ? page : undefined)
  })
}

/** Reads a page when the connection may get one. @param use Its second argument: the page was read in this turn. */
function inTurn(
  context: ListenContext,
  message: MessageOf<'listen'>,
  use: (page: Replay, isCurrent: boolean) => MaybePromise<void>,
): MaybePromise<void> {
  let isCurrent = true
  const readPage = () => {
    const page = readLog(context.broker, message, message.pattern, context)
    isCurrent = !isPromise(page)
    return page
  }
  return context.replays.read(context.connection, readPage, (page) => use(page, isCurrent))
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_PATTERN_INVALID`, `E_FORBIDDEN`, `E_LISTEN_LIMIT`.
 */
export function assertMayListen(context: ListenContext, message: MessageOf<'listen'>): void {
  const { listens, limits, groupCounts, broker } = context
  const { pattern, meta, state } = message
  const name = slotNameOf(message)
  if (name !== undefined) {
    assertMayJoin(context, message, name)
    return
  }
  if (state === true && !broker.capabilities.retained) throw refusalOf('E_UNSUPPORTED', { detail: 'state topics' })
  assertPatternWords(pattern, limits, refusalOf)
  if (!context.mayListen(pattern)) throw refusalOf('E_FORBIDDEN', { detail: `listen ${pattern}` })
  assertMeta(context, pattern, meta)
  if (listens.has(pattern)) return
  if (listens.size + groupCounts.size >= limits.maxListensPerConnection) {
    throw refusalOf('E_LISTEN_LIMIT', { detail: `at most ${limits.maxListensPerConnection}` })
  }
  context.assertUserListens()
  const { maxSearchListensPerConnection: maxSearches } = limits
  if (listens.searchCount + groupCounts.searchCount >= maxSearches && isSearch(pattern)) {
    const detail = `at most ${maxSearches} with a # before the last word (maxSearchListensPerConnection)`
    throw refusalOf('E_LISTEN_LIMIT', { detail })
  }
}

/** @throws {WebMQError} `E_UNSUPPORTED` when no message of the pattern is stamped. */
export function assertMeta(
  { metaRules }: Pick<ListenContext, 'metaRules'>,
  pattern: string,
  meta: true | undefined,
): void {
  if (meta === true && !metaRules.mayCover(pattern))
    throw refusalOf('E_UNSUPPORTED', { detail: `meta: the option meta of the server names no key of ${pattern}` })
}

/** @param page The last page, if it was read in this turn. */
function begin(context: ListenContext, message: MessageOf<'listen'>, page?: Replay): MaybePromise<void> {
  const { broker, listens } = context
  const { pattern } = message
  const opening = listens.open(pattern, variantOf('websocket', overflowOf(context, message), message.meta === true))
  const live = (log: Replay) => goLive(context, message, opening, log)
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
      return isPlain ? andThen(readLog(broker, message, pattern), live) : inTurn(context, message, live)
    })
    // With a broker that answers at once, all of this happens before any other message is handled.
    return isPromise(done) ? done.catch(fail) : done
  } catch (error) {
    fail(error)
  }
}

function goLive(context: ListenContext, message: MessageOf<'listen'>, opening: ListenOpening, log: Replay): void {
  if (context.isClosed) {
    opening.abort()
    return
  }
  assertMayListen(context, message)
  const { buffer } = opening
  const replay = withLive(log, buffer, isRangeAsked(message))
  const gap = replay.gap ?? buffer.gap
  const isLast = answer(context, message, gap === undefined ? replay : { ...replay, gap })
  if (!isLast) {
    opening.abort()
    return
  }
  if (message.since !== undefined) context.resumed(replay.gap === undefined && gap === undefined ? 'recovered' : 'gap')
  const isNew = !context.listens.has(message.pattern)
  opening.commit()
  if (isNew) context.listened(message.pattern)
}

/** Sends a page; returns whether it was the last one. */
function answer(context: ListenContext, message: MessageOf<'listen'>, replay: Replay): boolean {
  const isRecovered = message.since !== undefined && replay.gap === undefined
  const asked = overflowOf(context, message)
  const overflow = asked === 'disconnect' ? undefined : asked
  const isState = message.state === true
  return context.replays.send(context, message, replay, { isRecovered, becomesLive: true, overflow, isState })
}

function overflowOf(
  { overflowRules }: Pick<ListenContext, 'overflowRules'>,
  { overflow, pattern }: MessageOf<'listen'>,
): ListenOverflow {
  return overflow ?? overflowRules.of(pattern)
}
