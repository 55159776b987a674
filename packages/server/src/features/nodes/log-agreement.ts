import type { LogPlace, SharedLog } from '../../kernel/ports/shared-log.js'
import { isCount } from './node-message.js'

export interface LogAgreementContext {
  /** A hash of the keys that this node logs. */
  readonly loggedKeys: string
  readonly log: Pick<SharedLog, 'dispute' | 'doubt' | 'doubtedUpTo' | 'isMarked' | 'reopen'>
  /** Messages of any key may have been missed until now: the listeners of this node are told. */
  readonly missed: () => void
}

/** A lease of another node, of any version. */
interface Lease {
  readonly loggedKeys?: unknown
  readonly doubt?: unknown
  readonly starts?: unknown
}

/** For so long a message may be under way from a node that has gone, and a lease to one that was cut off. */
export const SETTLE_MS = 3_000
/** Longest accepted epoch, as in {@link Position}. */
const MAX_EPOCH_CHARS = 52

/**
 * Whether all nodes log the same keys. While they do not, as in a restart of one node after the other with another rule,
 * each node hears what the others publish, but a log may lack it. So the log is disputed: a listener that comes back is
 * told a gap. One that stays misses only what came while this node did not know of the other one.
 */
export class LogAgreement {
  readonly #context: LogAgreementContext
  readonly #schedule: (call: () => void) => void
  readonly #others = new Set<string>()
  /** Other nodes that serve clients, and so know where the log may lack messages. */
  readonly #serving = new Set<string>()
  /** A scheduled call does nothing when this number has changed. */
  #turn = 0
  #wasCutOff = false

  /** @param schedule Calls a function once, after {@link SETTLE_MS}. */
  constructor(context: LogAgreementContext, schedule: (call: () => void) => void) {
    this.#context = context
    this.#schedule = schedule
  }

  get differentCount(): number {
    return this.#others.size
  }

  fields(): object {
    const { loggedKeys, log } = this.#context
    const doubt = log.doubtedUpTo
    return { loggedKeys, ...(doubt === undefined ? {} : { doubt }) }
  }

  /** Whether the log is marked, or other nodes know what it lacks. */
  get isKnown(): boolean {
    return this.#context.log.isMarked || this.#serving.size > 0
  }

  /**
   * Other nodes have had time to answer, and this one serves nobody yet. Where nobody knows what the log lacks, another
   * epoch of it begins (ADR 53). Not beside a node with other rules that starts, too: each would end the epoch of the other
   * one, again and again, and what the log lacks is in doubt as long as both are there.
   */
  async settle(): Promise<void> {
    const { log } = this.#context
    // Also where another node serves: it may have begun the epoch since this one looked.
    if (!log.isMarked && (this.isKnown || this.#others.size === 0)) await log.reopen(this.isKnown)
    if (this.#others.size > 0) await log.dispute(true)
  }

  /**
   * A lease of another node. One that does not tell which keys it logs is of an earlier version: nothing is known of it.
   * @param hasListeners Whether this node has served anybody.
   * @returns Whether the node logs other keys.
   */
  take(node: string, { loggedKeys, doubt, starts }: Lease, hasListeners: boolean): boolean {
    const { log, missed, loggedKeys: own } = this.#context
    const isDifferent = typeof loggedKeys === 'string' && loggedKeys !== own
    // It came and went while this node was cut off, or has published before this node knew of it.
    if (starts !== true) this.#serving.add(node)
    let hasMissed = isPlace(doubt) && log.doubt(doubt) && this.#wasCutOff
    if (!isDifferent) this.#agrees(node)
    else if (!this.#others.has(node)) {
      this.#others.add(node)
      void log.dispute(true)
      hasMissed ||= starts !== true
    }
    if (hasMissed && hasListeners) missed()
    return isDifferent
  }

  gone(node: string): void {
    this.#serving.delete(node)
    this.#agrees(node)
  }

  #agrees(node: string): void {
    if (!this.#others.delete(node)) return
    const turn = ++this.#turn
    this.#schedule(() => {
      if (turn === this.#turn && this.#others.size === 0) void this.#context.log.dispute(false)
    })
  }

  /**
   * Messages of other nodes may be missing.
   * @param hasListeners Whether this node has served anybody: who listens later has missed none of them.
   */
  cutOff(hasListeners: boolean): void {
    if (!hasListeners) return
    this.#wasCutOff = true
    this.#schedule(() => {
      this.#wasCutOff = false
    })
  }
}

function isPlace(value: unknown): value is LogPlace {
  if (typeof value !== 'object' || value === null) return false
  const { epoch, offset } = value as Partial<Record<keyof LogPlace, unknown>>
  return typeof epoch === 'string' && epoch !== '' && epoch.length <= MAX_EPOCH_CHARS && isCount(offset)
}
