/** What was played on one version of a broker with one version of Node. */
export interface VersionRow {
  readonly broker: string
  /** As the broker says it: `4.0.5`. */
  readonly version: string
  /** Of Node: `20.20.2`. */
  readonly node: string
  /** Of its end: `2026-11-30`. */
  readonly date: string
  readonly commit: string
  /** How long it took. */
  readonly seconds: number
  readonly tests: {
    readonly passed: number
    readonly failed: number
    readonly skipped: number
    /** File and name of each test that failed. */
    readonly failures: readonly string[]
  }
  readonly checker: {
    /** That the broker has; as many schedules of each. */
    readonly themes: number
    readonly schedules: number
    /** Length of each. */
    readonly seconds: number
    readonly publishes: number
    readonly deliveries: number
    readonly gaps: number
    readonly violations: number
    /** Of schedules with violations. */
    readonly failedSeeds: readonly number[]
  }
}

export declare const VERSION_PAGES: readonly string[]
export declare function readRows(file?: string): VersionRow[]
export declare function writeRow(row: VersionRow, file?: string): void
export declare function keyOf(row: Pick<VersionRow, 'broker' | 'version' | 'node'>): string
export declare function withVersions(page: string, rows: readonly VersionRow[]): string
