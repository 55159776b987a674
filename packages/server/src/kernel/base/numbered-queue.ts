/** Values under consecutive numbers, from 1. They are taken in any order. */
export class NumberedQueue<Value> {
  /** From the oldest one, at `#head`. Those that were taken are `undefined`. */
  #values: (Value | undefined)[] = []
  #head = 0
  /** Number of the oldest one. */
  firstNumber = 1

  get first(): Value | undefined {
    return this.#values[this.#head]
  }

  /** Numbers from the oldest one on, those that were taken included. */
  get span(): number {
    return this.#values.length - this.#head
  }

  all(): Value[] {
    return this.#values.slice(this.#head).filter((value) => value !== undefined)
  }

  /** Adds one under the next number, `firstNumber + span`. */
  push(value: Value): void {
    this.#values.push(value)
  }

  get(number: number): Value | undefined {
    return number < this.firstNumber ? undefined : this.#values[number - this.firstNumber + this.#head]
  }

  /** Cuts the array when half of it is taken. Amortised O(1). */
  take(number: number): Value | undefined {
    const value = this.get(number)
    if (value === undefined) return undefined
    this.#values[number - this.firstNumber + this.#head] = undefined
    while (this.#head < this.#values.length && this.#values[this.#head] === undefined) {
      this.#head++
      this.firstNumber++
    }
    if (this.#head * 2 >= this.#values.length) {
      this.#values = this.#values.slice(this.#head)
      this.#head = 0
    }
    return value
  }
}
