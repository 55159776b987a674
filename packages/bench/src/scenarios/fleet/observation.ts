import type { Broken, FaultName } from './faults.js'
import type { FleetLog } from './log.js'

/** Everything that was observed in one run. Times are microseconds of the machine's monotonic clock. */
export interface FleetObservation {
  readonly startUs: number
  readonly endUs: number
  readonly log: FleetLog
  /** In order; one begins where the last one ends. */
  readonly windows: readonly FaultWindow[]
  /** What each node called itself, after each start. */
  readonly nodeNames: readonly (readonly string[])[]
  readonly usage: readonly UsageSample[]
}

/** The time from the beginning of a fault to that of the next one. */
export interface FaultWindow {
  /** `none`: the time before the first fault. */
  readonly fault: FaultName | 'none'
  readonly startUs: number
  /** When the fault was repaired. */
  readonly repairedUs: number
  readonly endUs: number
  /** `null`: nothing was broken. */
  readonly breaks: Broken | null
  /** Names of the nodes that the fault broke. */
  readonly brokenNodes: readonly string[]
}

/** CPU seconds that processes have used up to one moment; `null` where unknown. */
export interface UsageSample {
  readonly atUs: number
  readonly nodes: number
  readonly broker: number | null
  readonly balancer: number | null
  readonly clients: number | null
}
