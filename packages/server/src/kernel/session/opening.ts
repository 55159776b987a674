import { refusalOf } from 'webmq-client/protocol'
import { andThen, isPromise, type MaybePromise } from '../base/maybe-promise.js'
import { assertMayListen } from '../identity/access.js'
import type { Variant } from '../patterns/variant.js'
import type { InboundMessage } from '../ports/broker.js'
import type { KeyRules } from '../ports/key-rules.js'
import { isAfter } from '../ports/position.js'
import { assertPatternWords } from '../ports/word-limits.js'
import { isRangeAsked, type RangeOptions, type Replay, readLog, withLive } from '../replay/replay.js'
import type { ListenOpening } from '../routing/listens.js'
import { assertRoom } from './listen-room.js'
import type { Session } from './session.js'

/** What a client asks for, by whichever door: patterns that go live together. */
export interface ListenRequest {
  /** Each once; at least one. */
  readonly patterns: readonly string[]
  readonly range: RangeOptions
  /** Messages come with who published them, and when. */
  readonly hasMeta: boolean
}

/** How a door writes what a listen gets. */
export interface ListenWriter {
  readonly variant: Variant
  /** Sends as much of a page as the client may get now. Returns whether it was the last one, and all of it. */
  send(page: Replay): boolean
  /** Whether nothing of a pattern is missing, once it is live; `undefined`: it did not go on from a position. */
  isRecovered(pattern: string): boolean | undefined
}

/**
 * Checks limits and grants.
 * @throws {WebMQError} `E_UNSUPPORTED`, `E_PATTERN_INVALID`, `E_FORBIDDEN`, `E_LISTEN_LIMIT`.
 */
function assertMayBegin(session: Session, { patterns, range, hasMeta }: ListenRequest): void {
  const { listens, limits, services } = session
  if (range.state === true && !services.broker.capabilities.retained)
    throw refusalOf('E_UNSUPPORTED', { detail: 'state topics' })
  let beginningCount = 0
  for (const pattern of patterns) {
    assertPatternWords(pattern, limits, refusalOf)
    assertMayListen(session, pattern)
    if (!listens.has(pattern)) assertRoom(session, pattern, beginningCount++)
  }
  if (hasMeta) assertMeta(services.metaRules, patterns)
}

/** @throws {WebMQError} `E_UNSUPPORTED` when no message of any of the patterns is stamped. */
export function assertMeta(metaRules: Pick<KeyRules, 'mayCover'>, patterns: readonly string[]): void {
  if (patterns.some((pattern) => metaRules.mayCover(pattern))) return
  throw refusalOf('E_UNSUPPORTED', { detail: `meta: the option meta of the server names no key of ${patterns[0]}` })
}

/**
 * Checks, and then asks the hooks about each pattern in turn, until the session has ended.
 * @throws {WebMQError} As {@link assertMayBegin}; the refusal of a hook, or `E_HOOK_FAILED`.
 */
export function askToListen(session: Session, request: ListenRequest): MaybePromise<void> {
  assertMayBegin(session, request)
  const { hooks } = session.services
  if (hooks === undefined) return
  const { patterns, range } = request
  const askFrom = (first: number): MaybePromise<void> => {
    // Hooks that answer at once are asked in a loop: a client chooses how many patterns there are.
    for (let index = first; index < patterns.length && !session.isClosed; index++) {
      const asked = hooks.listen(session, 'listen', patterns[index] ?? '', isRangeAsked(range))
      if (isPromise(asked)) return asked.then(() => askFrom(index + 1))
    }
  }
  return askFrom(0)
}

/**
 * Begins to listen, as every door does. The client gets, in this order: the replayed messages of all patterns in log order, what
 * has arrived meanwhile, the live messages. Nothing is missing and nothing comes twice.
 * @returns Whether the patterns are live. Otherwise a page was sent, behind which the client, or its door, asks again; or the
 *   session has ended.
 * @throws {WebMQError} As {@link assertMayBegin}; `E_POSITION_INVALID`, `E_NODE_BEHIND`, `E_BROKER_UNAVAILABLE`.
 */
export function beginListens(session: Session, request: ListenRequest, writer: ListenWriter): MaybePromise<boolean> {
  assertMayBegin(session, request)
  // Without a log there is nothing to wait for.
  if (isPlain(session, request)) return open(session, request, writer)
  return inTurn(session, request, (page, isCurrent) => {
    if (session.isClosed) return false
    // A new token may have come while the request waited.
    assertMayBegin(session, request)
    if (page.hasMore) {
      writer.send(page)
      return false
    }
    // More messages may be logged before the patterns are bound, so a last page that took time is read again.
    return open(session, request, writer, isCurrent ? page : undefined)
  })
}

function isPlain({ services }: Session, { range }: ListenRequest): boolean {
  return !isRangeAsked(range) || !services.broker.capabilities.history
}

/** Reads a page when the connection may get one. @param use Its second argument: the page was read in this turn. */
function inTurn(
  session: Session,
  { range, patterns }: ListenRequest,
  use: (page: Replay, isCurrent: boolean) => MaybePromise<boolean>,
): MaybePromise<boolean> {
  const { broker, replays } = session.services
  let isCurrent = true
  const readPage = () => {
    const page = readLog(broker, range, patterns, session)
    isCurrent = !isPromise(page)
    return page
  }
  return replays.read(session, readPage, (page) => use(page, isCurrent))
}

/** @param page The last page, if it was read in this turn. */
function open(session: Session, request: ListenRequest, writer: ListenWriter, page?: Replay): MaybePromise<boolean> {
  const { range, patterns } = request
  const openings: ListenOpening[] = []
  const abort = () => {
    for (const opening of openings) opening.abort()
  }
  const fail = (error: unknown): never => {
    abort()
    throw error
  }
  const live = (log: Replay): boolean => {
    const isLive = !session.isClosed && goLive(session, request, writer, openings, log)
    if (!isLive) abort()
    return isLive
  }
  try {
    for (const pattern of patterns) openings.push(session.listens.open(pattern, writer.variant))
    const bound = allBound(openings)
    const done = andThen(bound, () => {
      // A gap before a pattern was bound does not count: nobody was promised those messages.
      for (const { buffer } of openings) buffer.gap = undefined
      if (page !== undefined && !isPromise(bound)) return live(page)
      const { broker } = session.services
      return isPlain(session, request)
        ? andThen(readLog(broker, range, patterns), live)
        : inTurn(session, request, live)
    })
    // With a broker that answers at once, all of this happens before any other message is handled.
    return isPromise(done) ? done.catch(fail) : done
  } catch (error) {
    return fail(error)
  }
}

function allBound(openings: readonly ListenOpening[]): MaybePromise<void> {
  const waiting = openings.map(({ bound }) => bound).filter(isPromise)
  return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
}

/** Sends the last page with what has arrived since; returns whether that was all, and the patterns are live. */
function goLive(
  session: Session,
  request: ListenRequest,
  writer: ListenWriter,
  openings: readonly ListenOpening[],
  log: Replay,
): boolean {
  assertMayBegin(session, request)
  const { measurements, observer } = session.services
  const replay = withLive(log, joined(openings), isRangeAsked(request.range))
  const gap = replay.gap ?? openings.find(({ buffer }) => buffer.gap !== undefined)?.buffer.gap
  if (!writer.send(gap === undefined ? replay : { ...replay, gap })) return false
  for (const [index, pattern] of request.patterns.entries()) {
    const isRecovered = writer.isRecovered(pattern)
    if (isRecovered !== undefined) measurements.resumes.add(isRecovered ? 'recovered' : 'gap')
    const isNew = !session.listens.has(pattern)
    openings[index]?.commit()
    if (isNew) observer?.listened?.(session, pattern)
  }
  return true
}

/** The live messages of several listens, each once, in log order. */
function joined(openings: readonly ListenOpening[]): Pick<ListenOpening['buffer'], 'messages' | 'hasOverflowed'> {
  const [first] = openings
  if (openings.length === 1 && first !== undefined) return first.buffer
  // The buffers share the objects of their messages.
  const messages = [...new Set(openings.flatMap(({ buffer }) => buffer.messages))]
  const logged = messages.filter(({ position }) => position !== undefined)
  logged.sort(({ position: one }: InboundMessage, { position: other }: InboundMessage) =>
    one === undefined || other === undefined || one.epoch !== other.epoch ? 0 : isAfter(one, other) ? 1 : -1,
  )
  return { messages: logged, hasOverflowed: openings.some(({ buffer }) => buffer.hasOverflowed) }
}
