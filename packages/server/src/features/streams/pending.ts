import type { Author } from '../../kernel/publishing/author.js'

/** What a message of an author counts among what waits, until it is {@link change}d. */
export class Pending {
  readonly #author: Author
  #byteCount: number

  constructor(author: Author, byteCount: number) {
    this.#author = author
    this.#byteCount = byteCount
    author.pendingBytes += byteCount
  }

  /** @returns What it was before. */
  change(byteCount: number): number {
    const before = this.#byteCount
    this.#author.pendingBytes += byteCount - before
    this.#byteCount = byteCount
    return before
  }
}
