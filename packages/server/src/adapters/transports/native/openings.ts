import type { ConnectionId, Rejection, UpgradeId, UpgradeRequest } from '../../../kernel/ports/transport.js'
import type { SinkCalls } from '../sink-calls.js'
import { rejectionOf } from '../upgrade/rejection.js'

/**
 * Upgrades that are not open connections yet. An accepted upgrade opens in the same turn: the first messages of the
 * sink leave in one write with the 101. The engine reports the end of every upgrade that was not rejected, so one that
 * failed is closed like any connection.
 */
export class NativeOpenings {
  readonly #calls: SinkCalls
  readonly #reject: (upgrade: UpgradeId, rejection: Rejection) => void
  /** The sink has not decided about these yet. */
  readonly #undecided = new Set<UpgradeId>()
  /** Accepted; they open in this turn. */
  #accepted: UpgradeId[] = []
  #isUpgrading = false

  constructor(calls: SinkCalls, reject: (upgrade: UpgradeId, rejection: Rejection) => void) {
    this.#calls = calls
    this.#reject = reject
  }

  upgrade(request: UpgradeRequest): void {
    this.#undecided.add(request.id)
    this.#isUpgrading = true
    if (!this.#calls.upgrade(request)) {
      this.#undecided.delete(request.id)
      this.#reject(request.id, rejectionOf('E_INTERNAL', { status: 500 }))
    }
    this.#isUpgrading = false
    this.#open()
  }

  /** Returns `false` if the upgrade was decided about or has ended. */
  accept(upgrade: UpgradeId): boolean {
    if (!this.#undecided.delete(upgrade)) return false
    // Not from within this call, but before the commands of the turn are submitted, which is scheduled later.
    if (this.#accepted.push(upgrade) === 1 && !this.#isUpgrading) process.nextTick(this.#open)
    return true
  }

  /** As {@link accept}. */
  reject(upgrade: UpgradeId): boolean {
    return this.#undecided.delete(upgrade)
  }

  closed(connection: ConnectionId, code: number, reason: string): void {
    if (this.#accepted.length > 0) this.#open()
    // The sink never hears of the end of an upgrade that it had not decided about.
    if (!this.#undecided.delete(connection as number as UpgradeId)) this.#calls.closed(connection, code, reason)
  }

  readonly #open = (): void => {
    const accepted = this.#accepted
    if (accepted.length === 0) return
    this.#accepted = []
    // A connection has the number of its upgrade.
    for (const upgrade of accepted) this.#calls.open(upgrade as number as ConnectionId, upgrade)
  }
}
