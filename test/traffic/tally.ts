/** Different outcomes of one door that are kept apart; more are counted as one. */
const MAX_OUTCOMES = 24
const MAX_VIOLATIONS = 20
const MAX_CHARS = 300

/** What came of the traffic, in bounded memory. */
export class Tally {
  readonly violations: string[] = []
  violationCount = 0
  readonly #counts = new Map<string, Map<string, number>>()

  count(door: string, outcome: string): void {
    const outcomes = this.#counts.get(door) ?? new Map<string, number>()
    this.#counts.set(door, outcomes)
    const known = outcomes.has(outcome) || outcomes.size < MAX_OUTCOMES ? outcome : 'others'
    outcomes.set(known, (outcomes.get(known) ?? 0) + 1)
  }

  violated(what: string): void {
    this.violationCount++
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push(what.slice(0, MAX_CHARS))
  }

  /** Of a door all outcomes, the most frequent first; then it counts anew. */
  take(): readonly string[] {
    const lines = [...this.#counts].map(([door, outcomes]) => {
      const sorted = [...outcomes].toSorted(([, one], [, other]) => other - one)
      return `  ${door}: ${sorted.map(([outcome, count]) => `${count} ${outcome}`).join(', ')}`
    })
    this.#counts.clear()
    return lines
  }
}
