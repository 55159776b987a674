/**
 * The frames of one turn for a connection, in order. Connections that get the same frames in a turn share the batch, so
 * their bytes are joined once.
 */
export class Batch {
  readonly byteLength: number
  readonly count: number
  readonly #before: Batch | undefined
  readonly #last: Buffer
  /** The latest longer batch that starts with this one. */
  #longer: Batch | undefined
  #bytes: Buffer | undefined

  /** @param before The frames before `last`. */
  constructor(last: Buffer, before?: Batch) {
    this.#last = last
    this.#before = before
    this.byteLength = last.length + (before?.byteLength ?? 0)
    this.count = 1 + (before?.count ?? 0)
  }

  with(frame: Buffer): Batch {
    if (this.#longer === undefined || this.#longer.#last !== frame) this.#longer = new Batch(frame, this)
    return this.#longer
  }

  get bytes(): Buffer {
    if (this.#before === undefined) return this.#last
    this.#bytes ??= this.#join()
    return this.#bytes
  }

  #join(): Buffer {
    const joined = Buffer.allocUnsafe(this.byteLength)
    let end = this.byteLength
    for (let batch: Batch | undefined = this; batch !== undefined; batch = batch.#before) {
      end -= batch.#last.length
      batch.#last.copy(joined, end)
    }
    return joined
  }
}
