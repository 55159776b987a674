import type { MessagePosition } from 'webmq-client/protocol'
import type { Position } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'

/**
 * Decides how a node writes positions into `message`s [P-8.8]: as a bare offset while all connections know the same
 * epoch. Connections share frames, so one decision holds for all of them. Once the broker's log has a new epoch,
 * positions are written in full until the node restarts.
 */
export class WirePositions {
  /** The latest epoch; `undefined` before the first position. */
  #epoch: string | undefined
  #isRelative = true

  /** The text of a position for the `ok` of a `listen` or a `history`. */
  give(position: Position): string {
    this.#note(position.epoch)
    return formatPosition(position)
  }

  /** The broker has positions, but an `ok` carries none: its connection knows no epoch. */
  giveNone(): void {
    this.#isRelative = false
  }

  /** The position of a `message`. Every recipient has received a position in an `ok` before. */
  of(position: Position | undefined): MessagePosition {
    if (position === undefined) return undefined
    this.#note(position.epoch)
    return this.#isRelative ? position.offset : formatPosition(position)
  }

  #note(epoch: string): void {
    if (epoch === this.#epoch) return
    if (this.#epoch !== undefined) this.#isRelative = false
    this.#epoch = epoch
  }
}
