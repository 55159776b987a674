import type { AssertionResult } from '../assertions.js'
import type { MachineInfo } from '../measure/machine.js'

export interface RunRecord {
  /** The exact command line; with `config` and `machine` it can be run again. */
  readonly command: string
  readonly machine: MachineInfo
  readonly scenario: string
  readonly config: object
  readonly results: object
  readonly assertions: readonly AssertionResult[]
  /** Members that the scenario adds: rates, costs, verdict. */
  readonly [section: string]: unknown
}
