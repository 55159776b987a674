/** One row of the guard, as it was played. */
export interface GuardRow {
  readonly name: string
  /** Keys of the columns that count. */
  readonly figures: readonly string[]
  readonly peers?: readonly string[]
  /** Name of the row that both sides measure; a result without it has one row. */
  readonly target: string
  /** Cells that tell the row in a result with several, such as `{ fault: 'freeze' }`. */
  readonly where?: Readonly<Record<string, unknown>>
  /** Of both sides, a result per round, as `--json` writes it. */
  readonly records: readonly (readonly unknown[])[]
}
export declare function guardReport(
  rows: readonly GuardRow[],
  options: { readonly sides: readonly { readonly name: string }[]; readonly leastChange: number },
): {
  readonly text: string
  readonly isWorse: boolean
  /** Row and figure that the results do not have. */
  readonly unmeasured: readonly string[]
}
