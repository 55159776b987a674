import { isCount } from './node-message.js'

/** Where in its log a node may lack messages: up to this offset. */
export interface LogDoubt {
  readonly epoch: string
  readonly offset: number
}

/** What {@link LogAgreement} works with. */
export interface LogAgreementContext {
  /** A hash of the keys that this node logs. */
  readonly loggedKeys: string
  /**
   * Messages of any key may have been missed until now: the listeners of this node are told.
   * @returns Where the log ends; `undefined` on a node without one.
   */
  readonly missed: () => LogDoubt | undefined
  /**
   * Another node says that messages may be missing in the log up to here.
   * @returns Up to where this node thinks so.
   */
  readonly doubted: (doubt: LogDoubt) => LogDoubt | undefined
}

/**
 * Time between two calls while nodes log different keys, and until the last one after that: a message under way from a
 * node that has gone arrives within it.
 */
export const MISSED_INTERVAL_MS = 3_000
/** Longest accepted epoch, as in {@link Position}. */
const MAX_EPOCH_CHARS = 52

/**
 * Whether all nodes log the same keys. While they do not, as in a restart of one node after the other with another rule,
 * a message goes by the log on one node and is awaited beside it on another, or the reverse. A call says that messages may
 * have been missed: when another node is first seen to differ, at an interval, when the difference ends, and at
 * least an interval after. So nothing is missed for good without a call that follows.
 */
export class LogAgreement {
  readonly #context: LogAgreementContext
  readonly #schedule: (call: () => void) => void
  readonly #others = new Set<string>()
  #doubt: LogDoubt | undefined
  #isScheduled = false
  /** Something has changed since the next call was scheduled: it comes too early to be the last. */
  #isOwed = false

  /** @param schedule Calls a function once, after {@link MISSED_INTERVAL_MS}. */
  constructor(context: LogAgreementContext, schedule: (call: () => void) => void) {
    this.#context = context
    this.#schedule = schedule
  }

  /** Other nodes that log other keys. */
  get differentCount(): number {
    return this.#others.size
  }

  /** What a lease says. */
  fields(): object {
    return { loggedKeys: this.#context.loggedKeys, ...(this.#doubt === undefined ? {} : { doubt: this.#doubt }) }
  }

  /**
   * A lease of another node. One that does not tell which keys it logs is of an earlier version: nothing is known of it.
   * @returns Whether the node logs other keys.
   */
  take(node: string, { loggedKeys, doubt }: { readonly loggedKeys?: unknown; readonly doubt?: unknown }): boolean {
    if (isDoubt(doubt)) this.#doubt = this.#context.doubted(doubt) ?? this.#doubt
    const isDifferent = typeof loggedKeys === 'string' && loggedKeys !== this.#context.loggedKeys
    if (!isDifferent) this.gone(node)
    else if (!this.#others.has(node)) {
      this.#others.add(node)
      this.#tell()
    }
    return isDifferent
  }

  /** The node has gone. */
  gone(node: string): void {
    if (this.#others.delete(node)) this.#tell()
  }

  #tell(): void {
    this.#say()
    this.#isOwed = true
    if (!this.#isScheduled) this.#sayLater()
  }

  #sayLater(): void {
    this.#isScheduled = true
    this.#isOwed = false
    this.#schedule(() => {
      this.#isScheduled = false
      this.#say()
      if (this.#isOwed || this.#others.size > 0) this.#sayLater()
    })
  }

  #say(): void {
    this.#doubt = this.#context.missed() ?? this.#doubt
  }
}

function isDoubt(value: unknown): value is LogDoubt {
  if (typeof value !== 'object' || value === null) return false
  const { epoch, offset } = value as Partial<Record<keyof LogDoubt, unknown>>
  return typeof epoch === 'string' && epoch !== '' && epoch.length <= MAX_EPOCH_CHARS && isCount(offset)
}
