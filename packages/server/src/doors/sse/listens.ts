import { type GapReason, WebMQError } from 'webmq-client/protocol'
import { variantOf } from '../../kernel/patterns/variant.js'
import { formatPosition } from '../../kernel/ports/position.js'
import { isRangeAsked, type Replay } from '../../kernel/replay/replay.js'
import { askToListen, beginListens, type ListenRequest, type ListenWriter } from '../../kernel/session/opening.js'
import type { Session } from '../../kernel/session/session.js'
import { encodeSseEvent, encodeSseMessage } from './events.js'
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
  /** Up to here the reader has everything. */
  #position: string | undefined
  readonly #isResuming: boolean
  readonly #hasMeta: boolean
  readonly #writer: ListenWriter

  constructor(session: Session, { patterns, range, meta }: StreamRequest) {
    this.#session = session
    this.#patterns = patterns
    this.#range = range
    this.#isResuming = range.since !== undefined
    this.#hasMeta = meta
    this.#writer = {
      variant: variantOf('sse', 'disconnect', meta),
      send: (page) => this.#send(page),
      isRecovered: (pattern) => (this.#isResuming ? !this.#missed.has(pattern) : undefined),
    }
  }

  /**
   * Resolves when the patterns are live, or the session has ended.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_BROKER_UNAVAILABLE`, `E_LISTEN_LIMIT`.
   */
  async begin(): Promise<void> {
    const session = this.#session
    await askToListen(session, this.#request)
    if (isRangeAsked(this.#range)) await this.#findUnlogged()
    while (!session.isClosed) {
      const isLive = await this.#beginOrReadOn()
      if (session.isClosed) return
      if (!isLive) continue
      const isRecovered = this.#isResuming && !this.#hasGap
      const position = this.#position
      const event = {
        name: 'live',
        ...(position === undefined ? {} : { id: position }),
        data: { ...(position === undefined ? {} : { position }), ...(isRecovered ? { recovered: true } : {}) },
      }
      session.replyEncoded(encodeSseEvent(event))
      return
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

  /**
   * The log ends before the position, for it has lost its end. A browser would ask for the position again and again, so the
   * reader is told of a gap instead, and gets what comes from now on.
   */
  async #beginOrReadOn(): Promise<boolean> {
    try {
      return await beginListens(this.#session, this.#request, this.#writer)
    } catch (error) {
      const isGone = error instanceof WebMQError && error.code === 'E_POSITION_INVALID'
      if (!isGone || this.#range.since === undefined) throw error
      this.#range = {}
      this.#tellGap('broker-lost')
      return false
    }
  }

  get #request(): ListenRequest {
    return { patterns: this.#patterns, range: this.#range, hasMeta: this.#hasMeta }
  }

  /** Sends as much of a page as the reader may get now, and goes on behind it. */
  #send(page: Replay): boolean {
    const { replays } = this.#session.services
    const sent = replays.take(this.#session, page, { becomesLive: true })
    if (sent.gap !== undefined) this.#tellGap(sent.gap)
    replays.deliver(this.#session, sent.messages, (message) => ({
      data: encodeSseMessage(message, true, this.#hasMeta),
      isBinary: false,
    }))
    this.#position = sent.position && formatPosition(sent.position)
    if (this.#position !== undefined && isRangeAsked(this.#range)) this.#range = { since: this.#position }
    return !sent.hasMore
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
}
