/** The figures of one table, as its file has them. */
export interface Figures {
  readonly command?: string
  readonly commit: string
  readonly date: string
  readonly measures: readonly string[]
  readonly keys?: readonly string[]
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}
export declare const PAGE: string
export declare const FIGURES: string
export declare function readFigures(folder?: string): Map<string, Figures>
export declare function figuresText(figures: Figures): string
export declare function withTables(page: string, tables: ReadonlyMap<string, Figures>): string
export declare function staleTables(
  tables: ReadonlyMap<string, Figures>,
  changedAtMs: (path: string) => number,
): string[]
