import { deferred } from '../../../kernel/base/deferred.js'
import { LogRestart } from '../../../kernel/ports/broker.js'
import type { LogPlace, SharedLog } from '../../../kernel/ports/shared-log.js'
import type { HistoryLog } from '../log/history-log.js'
import type { LinkLog } from './link.js'

/** Logs that are remembered when another broker stood at the address; the oldest goes first. */
const MAX_LEFT_EPOCHS = 1_000

/** What the nodes agree on about the log of the broker: its mark, and where it may lack messages. */
export class MarkedLog implements SharedLog {
  /** Absent on a node without history, which takes no part. */
  readonly #log: HistoryLog | undefined
  readonly #replaceLink: (cause: unknown) => void
  /** Of the established link. */
  link: LinkLog | undefined
  isMarked = true
  /** No other node runs: the next link begins another epoch unless the log is marked. */
  #mustBegin = false
  /** Settles when the log is open again, after {@link reopen}. */
  #reopened = deferred()
  /** Epochs of the logs that this node has followed before the present one. */
  readonly #leftEpochs = new Set<string>()

  constructor(log: HistoryLog | undefined, replaceLink: (cause: unknown) => void) {
    this.#log = log
    this.#replaceLink = replaceLink
  }

  async risk(): Promise<string | undefined> {
    return await this.link?.risk()
  }

  async dispute(isDisputed: boolean): Promise<void> {
    if (this.#log === undefined) return
    this.#log.dispute(isDisputed)
    // The next link does it again.
    if (isDisputed) await this.link?.unmark().catch(this.#replaceLink)
  }

  async reopen(isKnown: boolean): Promise<void> {
    // A link that is lost meanwhile may be so because another node has begun the log anew.
    if (isKnown && !(await this.link?.isMarked().catch(() => true))) return
    this.#mustBegin = !isKnown
    this.#reopened = deferred()
    const { promise } = this.#reopened
    const why = isKnown
      ? 'another node may have begun it anew'
      : 'nodes had other rules, and none is left that knows what it lacks'
    this.#replaceLink(new LogRestart(`the log is opened again (rules-differ): ${why}`))
    await promise
  }

  /** Whether all messages that the pattern matches are logged, by all nodes. */
  covers(pattern: string): boolean {
    return this.#log?.isDisputed === false && this.#log.covers(pattern)
  }

  doubt(upTo: LogPlace): boolean {
    return this.#log?.doubt(upTo) === true
  }

  get doubtedUpTo(): LogPlace | undefined {
    return this.#log?.doubtedUpTo
  }

  start(): void {
    this.isMarked = true
    this.#mustBegin = false
  }

  /** Another log begins. */
  left(epoch: string): void {
    this.#leftEpochs.add(epoch)
    const [oldest = ''] = this.#leftEpochs
    if (this.#leftEpochs.size > MAX_LEFT_EPOCHS) this.#leftEpochs.delete(oldest)
  }

  /** A link has followed the log up to its end. */
  async opened(link: LinkLog, log: HistoryLog): Promise<void> {
    if (log.isDisputed && !this.#mustBegin) await link.unmark()
    this.isMarked = await link.isMarked()
    if (this.#mustBegin) {
      if (!this.isMarked) await link.begin()
      // Another node has begun the log since this link has followed it: the next one follows that epoch.
      else if (((await link.end())?.epoch ?? log.epoch) !== log.epoch)
        throw new LogRestart('another node has begun the log')
      this.start()
    }
    this.#reopened.resolve()
    if (!this.#leftEpochs.delete(log.epoch)) return
    // Between the two, messages went into another log: another broker stood at the address.
    log.doubt(log.position, 'broker-lost')
    await link.unmark()
  }

  stop(): void {
    this.#reopened.resolve()
  }
}
