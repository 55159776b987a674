/** Counts by name. All names begin at 0, because an alert on a rate misses the first count of a series that is new. */
export class Counts<Name extends string> {
  readonly #counts: Record<Name, number>

  constructor(names: readonly Name[]) {
    this.#counts = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>
  }

  has(name: string): name is Name {
    return Object.hasOwn(this.#counts, name)
  }

  add(name: Name): void {
    this.#counts[name]++
  }

  stats(): Readonly<Record<Name, number>> {
    return { ...this.#counts }
  }
}
