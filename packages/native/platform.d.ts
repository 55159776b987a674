/** What decides which addon a machine can load. */
export interface System {
  /** As `process.platform`. */
  readonly platform: string
  /** As `process.arch`. */
  readonly arch: string
  /** Absent with musl, and elsewhere than on Linux. */
  readonly glibcVersion?: string | undefined
}

export declare const PLATFORMS: readonly string[]
export declare function thisSystem(): System
export declare function platformName(system: System): string | undefined
export declare function addonFileName(platform: string): string
export declare function packageName(platform: string): string
