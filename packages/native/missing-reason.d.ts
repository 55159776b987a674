import type { System } from './platform.js'

/** What the loader found. */
export interface Findings {
  readonly system: System
  /** Of webmq-native, and so of the package that it needs. */
  readonly version: string
  /** Whether this is a checkout of the repository, not an installed package. */
  readonly isCheckout: boolean
  /** Installed packages of other platforms. */
  readonly otherPackages: readonly string[]
  /** Version of the right package, where it is not {@link version}. */
  readonly installedVersion?: string
  /** Thrown when the addon was loaded. */
  readonly loadError?: Error
}

export declare function missingReason(findings: Findings): string
