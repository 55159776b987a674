import { WebMQError } from 'webmq-client/protocol'
import { type Deferred, deferred } from '../../../kernel/base/deferred.js'
import { within } from '../../../kernel/base/within.js'
import type { LogPlace } from '../../../kernel/ports/shared-log.js'
import type { LinkLog } from './link.js'

/** Time that a read waits for the replica to reach the position it asks for. Then the client is sent to another node. */
const MAX_ARRIVAL_MS = 2_000
/** After this share of it, the broker is asked whether the position exists at all. */
const ASK_SHARE = 1 / 2
/** A link that has not answered is asked again after this time: each question may hold something at the broker until then. */
const ASK_AGAIN_MS = 30_000

/** The end of the log, as the broker told it. */
interface EndAnswer {
  readonly askedAtMs: number
  readonly link: LinkLog | undefined
  /** `undefined` when the broker did not tell. Never rejects. */
  readonly end: Promise<LogPlace | undefined>
}

/**
 * Reads that wait until this node's copy of the log reaches an offset. A client that comes from another node may know a
 * position that this node has not read yet.
 */
export class LogArrivals {
  readonly #limitMs: number
  readonly #isAhead: (place: LogPlace) => boolean
  /** Tells the end of the log. */
  link: LinkLog | undefined
  readonly #offsets = new Map<Deferred<void>, number>()
  #lastAnswer: EndAnswer | undefined
  /** Waits for the answer to the question before. */
  #nextEnd: Promise<LogPlace | undefined> | undefined

  /** @param isAhead Whether the copy may still reach this place, and has not yet. */
  constructor(isAhead: (place: LogPlace) => boolean, brokerTimeoutMs: number) {
    this.#isAhead = isAhead
    this.#limitMs = Math.min(MAX_ARRIVAL_MS, brokerTimeoutMs)
  }

  /** The copy is complete up to this offset. Free when no read waits. */
  arrived(offset: number): void {
    if (this.#offsets.size === 0) return
    for (const [arrival, wanted] of this.#offsets) if (wanted <= offset) arrival.resolve()
  }

  /** Another log has begun, or the node stops: the offsets that reads wait for will not come. */
  giveUp(): void {
    for (const arrival of this.#offsets.keys()) arrival.resolve()
  }

  /**
   * Waits, within the limit, until the copy has the position. The caller checks whether it has.
   * @throws {WebMQError} `E_POSITION_INVALID` when the broker's log ends before it: it was made up, or the log has lost
   *   its end. Otherwise every node would send the client on, for ever.
   */
  async waitFor(position: LogPlace): Promise<void> {
    const beganMs = performance.now()
    const limitMs = this.#limitMs
    const leftMs = () => Math.max(0, beganMs + limitMs - performance.now())
    await this.until(position.offset, limitMs * ASK_SHARE)
    if (!this.#isAhead(position)) return
    let end: LogPlace | undefined
    const told = this.#endAskedSince(beganMs).then((answer) => {
      end = answer
    })
    await Promise.race([told, this.until(position.offset, leftMs())])
    if (!this.#isAhead(position)) return
    if (end?.epoch === position.epoch && end.offset < position.offset)
      throw new WebMQError('E_POSITION_INVALID', { detail: 'it is after the end of the log' })
    await this.until(position.offset, leftMs())
  }

  /** Resolves when the copy has the offset, when another log begins, or after `timeoutMs`. */
  async until(offset: number, timeoutMs?: number): Promise<void> {
    const arrival = deferred()
    this.#offsets.set(arrival, offset)
    await (timeoutMs === undefined ? arrival.promise : within(arrival.promise, timeoutMs))
    this.#offsets.delete(arrival)
  }

  /**
   * Waits, within the limit, until the copy has all that the log has now. The caller checks whether it has.
   * @returns The end of the log; `undefined` when the broker did not tell in time.
   */
  async reachEnd(): Promise<LogPlace | undefined> {
    const beganMs = performance.now()
    const asked = this.#endAskedSince(beganMs)
    if (!(await within(asked, this.#limitMs))) return undefined
    const end = await asked
    if (end !== undefined && this.#isAhead(end))
      await this.until(end.offset, Math.max(0, beganMs + this.#limitMs - performance.now()))
    return end
  }

  /** Asks the broker, one question at a time. All who began before a question take its answer, so questions are rare. */
  #endAskedSince(beganMs: number): Promise<LogPlace | undefined> {
    const last = this.#lastAnswer
    if (last !== undefined && last.askedAtMs >= beganMs) return last.end
    this.#nextEnd ??= this.#ask(last)
    return this.#nextEnd
  }

  async #ask(before: EndAnswer | undefined): Promise<LogPlace | undefined> {
    const isPresent = before !== undefined && before.link === this.link
    // A lost link may never answer.
    const isAnswered = await (isPresent ? within(before.end, this.#limitMs) : true)
    this.#nextEnd = undefined
    const { link } = this
    const isSilent = isPresent && !isAnswered && before.link === link
    if (isSilent && performance.now() - before.askedAtMs < ASK_AGAIN_MS) return undefined
    const asked = link?.end() ?? Promise.resolve(undefined)
    // A lost link does not tell. The reads then find that the replica is behind.
    const end = asked.catch(() => undefined)
    this.#lastAnswer = { askedAtMs: performance.now(), link, end }
    return await end
  }
}
