/** Completes the positions of a connection's messages, which may be relative to an earlier position [P-8.8]. */
export class PositionBase {
  #epoch: string | undefined

  /** Takes the position of the `ok` of a listen or of `history`. */
  note(position: string | undefined): void {
    if (position !== undefined) this.#epoch = position.slice(0, position.lastIndexOf(':'))
  }

  /** The full position of a message; `undefined` if it has none, or is relative to nothing. */
  complete(position: string | undefined): string | undefined {
    if (position === undefined) return undefined
    if (!position.includes(':')) return this.#epoch === undefined ? undefined : `${this.#epoch}:${position}`
    this.note(position)
    return position
  }

  /** The connection is lost; its epoch is forgotten. */
  clear(): void {
    this.#epoch = undefined
  }
}
