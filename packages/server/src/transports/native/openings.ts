import type { ConnectionId, UpgradeId, UpgradeRequest } from '../../ports/transport.js'
import type { NativeSinkCalls } from './sink-calls.js'

/**
 * Upgrades on their way to an open connection. What is accepted is open at once: the sink says its first words in the turn
 * of the accept, and they leave in one write with the 101. The engine tells the end of every upgrade that was not
 * rejected, so that one which came to nothing is closed like any other.
 */
export class NativeOpenings {
  readonly #calls: NativeSinkCalls
  /** Told to the sink, which has not decided yet. */
  readonly #undecided = new Set<UpgradeId>()
  /** Accepted, and to be opened in this turn. */
  #accepted: UpgradeId[] = []
  #isUpgrading = false

  constructor(calls: NativeSinkCalls) {
    this.#calls = calls
  }

  upgrade(request: UpgradeRequest): void {
    this.#undecided.add(request.id)
    this.#isUpgrading = true
    if (!this.#calls.upgrade(request)) this.#undecided.delete(request.id)
    this.#isUpgrading = false
    this.#open()
  }

  /** Whether the upgrade still waited for the decision. */
  accept(upgrade: UpgradeId): boolean {
    if (!this.#undecided.delete(upgrade)) return false
    // Never from inside of the call; before the commands of the turn are handed over, which is scheduled after this.
    if (this.#accepted.push(upgrade) === 1 && !this.#isUpgrading) process.nextTick(this.#open)
    return true
  }

  /** Whether the upgrade still waited for the decision. */
  reject(upgrade: UpgradeId): boolean {
    return this.#undecided.delete(upgrade)
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    if (this.#accepted.length > 0) this.#open()
    // An upgrade that is over before it was decided about is nobody's business any more.
    if (!this.#undecided.delete(connection as number as UpgradeId)) this.#calls.closed(connection, code, reason)
  }

  readonly #open = (): void => {
    const accepted = this.#accepted
    if (accepted.length === 0) return
    this.#accepted = []
    // A connection keeps the number of its upgrade.
    for (const upgrade of accepted) this.#calls.open(upgrade as number as ConnectionId, upgrade)
  }
}
