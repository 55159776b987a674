import type { GapReason } from 'webmq-client/protocol'
import type { StepBudget } from '../../patterns/pattern-matcher.js'
import type { ReadResult } from '../../ports/broker.js'
import { inbound } from '../../ports/messages.js'
import type { RetainedMessage, RetainedSet } from './retained-set.js'
import type { SegmentedLog, Wants } from './segmented-log.js'

export interface StateReadOptions {
  readonly set: RetainedSet
  readonly log: SegmentedLog
  readonly after: number
  readonly limit: number
  readonly wants: Wants
  readonly gap: GapReason | undefined
}

/**
 * One read of the retained messages, in slices. A message that is replaced between two slices moves to the end, where
 * the read finds the new one. So the result is the state at the position where the last slice ends.
 */
export class StateRead {
  readonly set: RetainedSet
  readonly #options: StateReadOptions
  readonly #found: RetainedMessage[] = []
  #after: number
  #isAtEnd = false

  constructor(options: StateReadOptions) {
    this.set = options.set
    this.#options = options
    this.#after = options.after
  }

  /** Reads on, within the budget; returns whether the read is done. */
  advance(budget: StepBudget): boolean {
    const { wants, limit, log } = this.#options
    const lookedAt = this.set.collect({ after: this.#after, wants, limit }, this.#found, budget)
    this.#isAtEnd = lookedAt === undefined
    this.#after = lookedAt ?? Math.max(this.#after, log.lastOffset)
    return this.#isAtEnd || this.#found.length >= limit
  }

  /** What was read. It is partial when the limit is reached, and when the read was not ended. */
  result(): ReadResult {
    const { log, gap } = this.#options
    const position = log.positionAt(this.#after)
    const { epoch } = position
    return {
      messages: this.#found.map((message) => {
        const { offset, fingerprint } = message
        return inbound(message, { epoch, offset, fingerprint }, undefined)
      }),
      position,
      isPartial: !this.#isAtEnd,
      ...(gap === undefined ? undefined : { gap }),
    }
  }
}
