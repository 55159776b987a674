/**
 * Positions that are relative to the last full one of the connection. Delete this file and its two uses in
 * `connection.ts` when servers send every position in full.
 */
export class RelativePositions {
  #epoch = ''

  /** Takes the position of an `ok` of a listen or of `history`. */
  adopt(position: string | undefined): void {
    if (position?.includes(':')) this.#epoch = position.slice(0, position.lastIndexOf(':'))
  }

  /** @returns The position of a message in full, or `-`. */
  resolve(position: string): string {
    if (position === '-') return position
    if (!position.includes(':')) return `${this.#epoch}:${position}`
    this.adopt(position)
    return position
  }
}
