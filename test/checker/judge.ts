import type { RunRecord } from './record.js'
import type { Rules } from './rules.js'

/** A promise that was not kept. */
export interface Violation {
  /** Name of the promise, such as `lost` or `twice`. */
  readonly rule: RuleName
  readonly atMs: number
  /** Who saw it: the name of an actor. */
  readonly owner: string
  readonly text: string
}

export type RuleName = string

/** Holds what a run has seen against what the system promises. Pure. */
export function judge(_record: RunRecord, _rules: Rules): Violation[] {
  throw new Error('not written yet')
}
