import { readSync, writeSync } from 'node:fs'

/** The descriptor of the {@link DeliveredCount} file in both nodes of a relay. */
const DELIVERED_COUNT_FD = 3

const COUNT_BYTES = 8

/**
 * A count that one process writes and another reads: eight bytes of a file that both inherit. A write is a `pwrite`, a
 * read a `pread`, 1 to 2 us each. Neither process waits for the other or wakes it.
 */
export class DeliveredCount {
  readonly #fd: number
  readonly #bytes = Buffer.alloc(COUNT_BYTES)

  /** @param fd Of a file that is empty at first, which counts as 0. */
  constructor(fd = DELIVERED_COUNT_FD) {
    this.#fd = fd
  }

  tell(count: number): void {
    this.#bytes.writeDoubleLE(count)
    writeSync(this.#fd, this.#bytes, 0, COUNT_BYTES, 0)
  }

  look(): number {
    readSync(this.#fd, this.#bytes, 0, COUNT_BYTES, 0)
    return this.#bytes.readDoubleLE()
  }
}
