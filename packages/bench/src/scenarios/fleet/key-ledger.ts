import type { Hole, Received } from './log.js'

/** What a message is, compared with those of its key before it. */
export type Arrival = 'delivered' | 'doubled' | 'out of order'

/** Counts the numbers of one key at one user. Memory grows with the holes, not with the messages. */
export class KeyLedger implements Received {
  first = 0
  next = 0
  #holes: Hole[] = []
  #lastUs: number | undefined

  get holes(): readonly Hole[] {
    return this.#holes
  }

  /** @param atUs When it arrived. */
  receive(number: number, atUs: number): Arrival {
    const beforeUs = this.#lastUs
    if (beforeUs === undefined) {
      this.first = number
      this.next = number
    } else if (number < this.next) {
      return this.#receiveLate(number)
    }
    if (beforeUs !== undefined && number > this.next) {
      this.#holes.push({ from: this.next, to: number, beforeUs, afterUs: atUs })
    }
    this.next = number + 1
    this.#lastUs = atUs
    return 'delivered'
  }

  /** Fills a hole, or is a second copy. */
  #receiveLate(number: number): Arrival {
    if (number < this.first) {
      // Published before the listen was accepted, and behind a later one.
      const { first } = this
      this.first = number
      if (number + 1 < first) this.#holes.push({ from: number + 1, to: first, beforeUs: 0, afterUs: 0 })
      return 'out of order'
    }
    const index = this.#holes.findIndex(({ from, to }) => number >= from && number < to)
    const hole = this.#holes[index]
    if (hole === undefined) return 'doubled'
    const parts = [
      { ...hole, to: number },
      { ...hole, from: number + 1 },
    ].filter(({ from, to }) => from < to)
    this.#holes.splice(index, 1, ...parts)
    return 'out of order'
  }
}
