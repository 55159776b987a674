/** Room that messages on their way to the broker will take once they are logged. */
export class Reservations {
  /** New keys, with the number of their messages on the way. */
  readonly #counts = new Map<string, number>()
  #byteCount = 0

  get byteCount(): number {
    return this.#byteCount
  }

  /** Number of new keys on their way, counting this one. */
  keyCountWith(key: string): number {
    return this.#counts.size + (this.#counts.has(key) ? 0 : 1)
  }

  /** @returns Gives the room back; has an effect once. */
  add(key: string, isNew: boolean, byteCount: number): () => void {
    this.#byteCount += byteCount
    if (isNew) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#byteCount -= byteCount
      const left = isNew ? (this.#counts.get(key) ?? 1) - 1 : undefined
      if (left === 0) this.#counts.delete(key)
      else if (left !== undefined) this.#counts.set(key, left)
    }
  }
}
