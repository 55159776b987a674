import { whyUntrue } from './gaps.js'
import type { Knowledge } from './known.js'
import type { EventOf, ListenState } from './listen-state.js'
import type { AskedEvent, ListenerRecord, Received } from './record.js'
import type { Report, RuleName } from './violation.js'

/** What is expected of the events of a listener one by one: their times, their messages, and the reasons of gaps. */
export class ListenerChecks {
  readonly #record: ListenerRecord
  readonly #knowledge: Knowledge
  readonly #report: Report

  constructor(record: ListenerRecord, knowledge: Knowledge, report: Report) {
    this.#record = record
    this.#knowledge = knowledge
    this.#report = report
  }

  /** A listen that was live when the log was lost is told a gap, also when it has missed nothing. */
  expectGaps({ pattern, begunAtMs, gaps, isLive, frontier }: ListenState): void {
    const { record, rules } = this.#knowledge
    if (rules.log !== 'shared' || !isLive || !this.#knowledge.isCovered(pattern)) return
    for (const { touches, fromMs, untilMs, name } of record.faults) {
      if (!touches.includes('broker-data') || begunAtMs >= fromMs) continue
      if (this.quietMs(untilMs, record.endedAtMs) <= rules.deliverWithinMs) continue
      if (this.#knowledge.hasGoneOn(frontier?.epoch, fromMs, untilMs)) continue
      const toldAtMs = gaps.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY
      // What nobody has learnt of since is not lost to anybody.
      const isTold = toldAtMs >= fromMs || !this.#knowledge.hasLearnt(toldAtMs, fromMs)
      if (!isTold) this.#violate('gap-untold', record.endedAtMs, `${pattern}: ${name}`)
    }
  }

  /** Whether it did not read at the end of the run. */
  get isStalled(): boolean {
    const last = this.#stalls.at(-1)
    return last !== undefined && (last.untilMs === undefined || last.untilMs >= this.#knowledge.record.endedAtMs)
  }

  get #stalls() {
    const { name } = this.#record
    return this.#knowledge.record.connections.filter(({ owner }) => owner === name).flatMap(({ stalls }) => stalls)
  }

  /** Time without a fault in which the listener read. */
  quietMs(fromMs: number, untilMs: number): number {
    const stalledMs = this.#stalls.reduce((sum, { fromMs: from, untilMs: until = untilMs }) => {
      return sum + Math.max(0, Math.min(until, untilMs) - Math.max(from, fromMs))
    }, 0)
    return this.#knowledge.quietMs(fromMs, untilMs) - stalledMs
  }

  /** A replay, or the attempt at one, ended in time. */
  expectEnd({ pattern }: ListenState, beganAtMs: number, atMs: number): void {
    const tookMs = this.quietMs(beganAtMs, atMs)
    if (tookMs > this.#knowledge.rules.liveWithinMs) {
      this.#violate('replay-endless', atMs, `${pattern} was asked for ${Math.round(tookMs)} ms before`)
    }
  }

  /** A live message came in time. */
  expectSoon({ id, atMs }: EventOf<'message'>, listens: readonly ListenState[]): void {
    const known = this.#knowledge.messages.get(id)
    // A second copy may come whenever it is published.
    if (known?.ackedAtMs === undefined || this.#knowledge.mayComeAgain(known)) return
    const fromMs = Math.max(known.ackedAtMs, ...listens.map(({ liveAtMs }) => liveAtMs))
    const tookMs = this.quietMs(fromMs, atMs)
    if (tookMs > this.#knowledge.rules.deliverWithinMs) {
      this.#violate('slow-delivery', atMs, `${id} came ${Math.round(tookMs)} ms after its ok`)
    }
  }

  /** A message is as it was published. */
  expectKnown({ id, key, payloadBytes }: Received, atMs: number): void {
    const known = this.#knowledge.messages.get(id)
    if (known === undefined) this.#violate('alien', atMs, `${id || 'a message'} of ${key} was never published`)
    else if (known.key !== key) this.#violate('wrong-key', atMs, `${id} of ${known.key} came as ${key}`)
    else if (known.payloadBytes !== payloadBytes) this.#violate('alien', atMs, `${id} came with ${payloadBytes} bytes`)
  }

  /** The reason of a gap is true. @param asked By the request whose answer told it; missing if the listen was live. */
  expectTrue(
    pattern: string,
    reason: string,
    at: { readonly atMs: number; readonly position?: string | undefined },
    asked?: AskedEvent,
  ): void {
    const answered = asked === undefined ? undefined : { asked, position: at.position }
    const hasStalled =
      this.#stalls.some(({ fromMs }) => fromMs <= at.atMs) || this.#knowledge.hadFault(at.atMs, ['client-links'])
    const told = { reason, pattern, atMs: at.atMs, hasStalled, ...(answered === undefined ? {} : { answered }) }
    const why = whyUntrue(told, this.#knowledge)
    if (why !== undefined) this.#violate('gap-untrue', at.atMs, `${pattern}: ${reason}, but ${why}`)
  }

  #violate(rule: RuleName, atMs: number, text: string): void {
    this.#report(rule, atMs, this.#record.name, text)
  }
}
