/** The figures of one table, as its file has them. */
export interface Figures {
  readonly commands: readonly string[]
  /** The newest commit of code. */
  readonly commit: string
  readonly date: string
  readonly machine: string
  readonly versions: Readonly<Record<string, string>>
  readonly repeats: number
  /** That taking it took. */
  readonly seconds: number
  readonly columns: readonly { readonly key: string; readonly title: string; readonly format: string }[]
  /** By key of the columns; `spread` has the smallest and the largest repeat. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}
export declare const PAGES: readonly string[]
export declare const FIGURES: string
export declare function readFigures(folder?: string): Map<string, Figures>
export declare function figuresText(figures: Figures): string
export declare function placesOf(page: string): string[]
export declare function withTables(page: string, tables: ReadonlyMap<string, Figures>): string
export declare function staleTables(
  tables: ReadonlyMap<string, { readonly date: string }>,
  changedAtMs: (path: string) => number,
): string[]
