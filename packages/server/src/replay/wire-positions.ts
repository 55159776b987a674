import type { MessagePosition } from 'webmq-client/protocol'
import type { Position } from '../ports/broker.js'
import { formatPosition } from '../ports/position.js'

/**
 * How positions stand in the `message`s of a node [P-8.8]: as an offset alone, while every connection has been given
 * positions of one epoch only. A frame is shared by many connections, so that this is asked of all of them together: once the
 * broker's log has begun anew, positions are full until the node is started again.
 */
export class WirePositions {
  /** The one epoch that connections were given; `undefined` before the first. */
  #epoch: string | undefined
  #isRelative = true

  /** The text of a position that a connection is given with the `ok` of a listen or of `history`. */
  give(position: Position): string {
    this.#note(position.epoch)
    return formatPosition(position)
  }

  /** A listen was answered without a position, by a broker that has them: its connection knows no epoch. */
  giveNone(): void {
    this.#isRelative = false
  }

  /** What stands in a `message`, which goes only to connections that were given a position before. */
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
