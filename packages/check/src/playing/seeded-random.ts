/** Chance that a seed repeats. */
export class SeededRandom {
  #state: number

  /** @param parts Seeds with different parts are independent. */
  constructor(...parts: readonly (number | string)[]) {
    // FNV-1a, 32 bit: spreads neighbouring seeds.
    let hash = 0x811c9dc5
    for (const character of parts.join('/')) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193)
    this.#state = hash >>> 0
  }

  /** In [0, 1). mulberry32. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** A whole number, both bounds included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.integer(0, choices.length - 1)]
    if (choice === undefined) throw new Error('nothing to choose from')
    return choice
  }

  /** `count` different ones, in random order; all if there are fewer. */
  sample<T>(choices: readonly T[], count: number): T[] {
    const left = [...choices]
    const taken: T[] = []
    while (taken.length < count && left.length > 0) {
      taken.push(...left.splice(this.integer(0, left.length - 1), 1))
    }
    return taken
  }
}
