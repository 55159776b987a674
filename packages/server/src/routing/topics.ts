/** Keys that have a number at a time; each takes its text and about 100 bytes. */
const MAX_KEYS = 65_536
const NUMBERS = 2 ** 32

/**
 * Numbers of keys, for the transport, which knows no keys: a newer message of a key may replace an older one that waits.
 *
 * A number is given to one key only, until 2^32 more were given. A key may get another number after {@link MAX_KEYS} other
 * keys: an older message then waits beside a newer one, which is correct.
 */
export class Topics {
  readonly #numbers = new Map<string, number>()
  #next = 0

  of(key: string): number {
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    if (this.#numbers.size >= MAX_KEYS) this.#numbers.clear()
    const number = this.#next
    this.#next = (number + 1) % NUMBERS
    this.#numbers.set(key, number)
    return number
  }
}
