import { type GapReason, WebMQError } from 'webmq-client/protocol'
import { assertMayListen } from '../../identity/access.js'
import { variantOf } from '../../patterns/variant.js'
import type { InboundMessage } from '../../ports/broker.js'
import { formatPosition, isAfter } from '../../ports/position.js'
import { isRangeAsked, type Replay, readLog, withLive } from '../../replay/replay.js'
import type { ListenOpening } from '../../routing/listens.js'
import { encodeSseEvent, encodeSseMessage } from '../../routing/sse-events.js'
import { assertMeta } from '../handlers/listen.js'
import { assertRoom } from '../listen-room.js'
import type { Session } from '../session.js'
import type { StreamRequest } from './request.js'

/**
 * Begins the listens of an event stream. Its reader gets, in this order: the replayed messages of all patterns in log order,
 * `live`, the live messages. Nothing is missing and nothing comes twice. As all patterns are read together and go live
 * together, the position of each event stands for all of them.
 */
export class StreamListens {
  readonly #session: Session
  readonly #patterns: readonly string[]
  #range: StreamRequest['range']
  /** Of several patterns, those whose messages are all logged. */
  #logged: ReadonlySet<string> = new Set()
  #hasGap = false
  /** Of which messages may be missing. */
  readonly #missed = new Set<string>()
  readonly #isResuming: boolean
  readonly #hasMeta: boolean

  constructor(session: Session, { patterns, range, meta }: StreamRequest) {
    this.#session = session
    this.#patterns = patterns
    this.#range = range
    this.#isResuming = range.since !== undefined
    this.#hasMeta = meta
  }

  /**
   * Resolves when the patterns are live, or the session has ended.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_BROKER_UNAVAILABLE`, `E_LISTEN_LIMIT`.
   */
  async begin(): Promise<void> {
    await this.#ask()
    if (isRangeAsked(this.#range)) await this.#findUnlogged()
    while (!this.#session.isClosed) {
      const position = await this.#step().catch((error: unknown) => this.#forgetPosition(error))
      if (this.#session.isClosed) return
      if (position === false) continue
      const isRecovered = this.#isResuming && !this.#hasGap
      this.#send({
        name: 'live',
        ...(position === undefined ? {} : { id: position }),
        data: { ...(position === undefined ? {} : { position }), ...(isRecovered ? { recovered: true } : {}) },
      })
      return
    }
  }

  /** Checks grants and limits, then asks the hooks, as for the listens of a WebSocket. */
  async #ask(): Promise<void> {
    const session = this.#session
    this.#patterns.forEach((pattern, index) => {
      assertMayListen(session, pattern)
      assertRoom(session, pattern, index)
    })
    if (this.#hasMeta && !this.#patterns.some((pattern) => session.services.metaRules.mayCover(pattern)))
      for (const pattern of this.#patterns) assertMeta(session.services.metaRules, pattern, true)
    for (const pattern of this.#patterns) {
      await session.services.hooks?.listen(session, 'listen', pattern, isRangeAsked(this.#range))
      if (session.isClosed) return
    }
  }

  /** Reads nothing: the answer of the log says whether it has the pattern. */
  async #findUnlogged(): Promise<void> {
    const { broker } = this.#session.services
    const end = broker.capabilities.history ? await broker.position() : undefined
    if (end === undefined || this.#patterns.length === 1) return
    const logged: string[] = []
    // Nothing stands before it.
    const start = { epoch: end.epoch, offset: 0, fingerprint: 0 }
    for (const pattern of this.#patterns) {
      const { gap } = await broker.read({ before: start, limit: 1 }, [pattern], this.#session)
      if (gap !== 'no-history') logged.push(pattern)
    }
    this.#logged = new Set(logged)
  }

  /** Sends a page; the position up to which the messages are complete once the patterns are live, `false` before. */
  async #step(): Promise<string | undefined | false> {
    const hasLog = isRangeAsked(this.#range) && this.#session.services.broker.capabilities.history
    if (hasLog && (await this.#readOn())) return false
    return this.#session.isClosed ? false : await this.#goLive()
  }

  /**
   * The log ends before the position, for it has lost its end. A browser would ask for the position again and again, so the
   * reader is told of a gap instead, and gets what comes from now on.
   */
  #forgetPosition(error: unknown): false {
    const isGone = error instanceof WebMQError && error.code === 'E_POSITION_INVALID'
    if (!isGone || this.#range.since === undefined) throw error
    this.#range = {}
    this.#tellGap('broker-lost')
    return false
  }

  /** Sends a page that is not the last one; `false` if there is none. */
  #readOn(): Promise<boolean> | boolean {
    const { replays, broker } = this.#session.services
    const read = () => readLog(broker, this.#range, this.#patterns, this.#session)
    return replays.read(this.#session, read, (page) => {
      if (this.#session.isClosed || !page.hasMore) return false
      this.#sendPage(page, false)
      return true
    }) as Promise<boolean> | boolean
  }

  /** Sends the last page and goes live. */
  async #goLive(): Promise<string | undefined | false> {
    const session = this.#session
    const openings: ListenOpening[] = []
    const variant = variantOf('sse', 'disconnect', this.#hasMeta)
    const abort = () => {
      for (const opening of openings) opening.abort()
    }
    try {
      for (const pattern of this.#patterns) {
        assertMayListen(session, pattern)
        openings.push(session.listens.open(pattern, variant))
      }
      await Promise.all(openings.map(({ bound }) => bound))
      // Nobody was promised the messages before.
      for (const { buffer } of openings) buffer.gap = undefined
      const { replays, broker, measurements, observer } = session.services
      const read = () => readLog(broker, this.#range, this.#patterns, session)
      return await replays.read(session, read, (log) => {
        if (session.isClosed) {
          abort()
          return undefined
        }
        for (const pattern of this.#patterns) assertMayListen(session, pattern)
        const replay = withLive(log, joined(openings), isRangeAsked(this.#range))
        const gap = replay.gap ?? openings.find(({ buffer }) => buffer.gap !== undefined)?.buffer.gap
        const sent = this.#sendPage(gap === undefined ? replay : { ...replay, gap }, true)
        if (sent.hasMore) {
          abort()
          return false
        }
        for (const opening of openings) opening.commit()
        for (const pattern of this.#patterns) {
          if (this.#isResuming) measurements.resumes.add(this.#missed.has(pattern) ? 'gap' : 'recovered')
          observer?.listened?.(session, pattern)
        }
        return sent.position && formatPosition(sent.position)
      })
    } catch (error) {
      abort()
      throw error
    }
  }

  /** Sends as much of a page as the reader may get now, and goes on behind it. */
  #sendPage(page: Replay, becomesLive: boolean): Replay {
    const { replays } = this.#session.services
    const sent = replays.take(this.#session, page, { becomesLive })
    if (sent.gap !== undefined) this.#tellGap(sent.gap)
    replays.deliver(this.#session, sent.messages, (message) => ({
      data: encodeSseMessage(message, true, this.#hasMeta),
      isBinary: false,
    }))
    if (sent.position !== undefined && isRangeAsked(this.#range)) this.#range = { since: formatPosition(sent.position) }
    return sent
  }

  #tellGap(reason: GapReason): void {
    this.#hasGap = true
    const missed =
      reason === 'no-history' ? this.#patterns.filter((pattern) => !this.#logged.has(pattern)) : this.#patterns
    for (const pattern of missed) {
      this.#missed.add(pattern)
      this.#session.reply({ verb: 'gap', pattern, reason })
    }
  }

  #send(event: Parameters<typeof encodeSseEvent>[0]): void {
    this.#session.replyEncoded(encodeSseEvent(event))
  }
}

/** The live messages of several listens, each once, in log order. */
function joined(openings: readonly ListenOpening[]): { messages: InboundMessage[]; hasOverflowed: boolean } {
  // The buffers share the objects of their messages.
  const messages = [...new Set(openings.flatMap(({ buffer }) => buffer.messages))]
  const logged = messages.filter(({ position }) => position !== undefined)
  logged.sort(({ position: one }, { position: other }) =>
    one === undefined || other === undefined || one.epoch !== other.epoch ? 0 : isAfter(one, other) ? 1 : -1,
  )
  return { messages: logged, hasOverflowed: openings.some(({ buffer }) => buffer.hasOverflowed) }
}
