/** What makes a table of docs/benchmarks.md; see `benchmark-tables.mjs`. */
export interface Table {
  readonly runs: readonly { readonly label?: string; readonly args: readonly string[] }[]
  readonly dry: string
  readonly seconds: number
  readonly keys: readonly string[]
  readonly fileOnly?: readonly string[]
  readonly shows?: (row: Readonly<Record<string, unknown>>) => boolean
  readonly measures: readonly string[]
}
export declare const TABLES: Readonly<Record<string, Table>>
