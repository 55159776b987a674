import type { Timeline } from './timeline.js'

/** What a run has come to, for the page, for `--json` and for the terminal. */
export interface Outcome {
  /** What was checked. */
  readonly target: string
  readonly verdict: 'held' | 'violated'
  /** As it was typed, without secrets. */
  readonly command: string
  readonly version: string
  /** ISO 8601. */
  readonly beganAt: string
  readonly tookMs: number
  readonly facts: readonly (readonly [name: string, value: string])[]
  /** In the order in which they are shown. */
  readonly counts: Readonly<Record<string, number>>
  /** By reason. */
  readonly gaps: Readonly<Record<string, number>>
  readonly promises: readonly PromiseRow[]
  readonly schedules: readonly ScheduleRow[]
  readonly failures: readonly Failure[]
}

export interface PromiseRow {
  readonly rule: string
  readonly promise: string
  readonly unless: string
  /** What it was held against, and how often. */
  readonly of: string
  readonly checks: number
  readonly violations: number
}

export interface ScheduleRow {
  readonly seed: number
  readonly theme: string
  readonly publishes: number
  readonly deliveries: number
  readonly gaps: number
  readonly violations: number
  readonly tookMs: number
}

/** A schedule in which a promise was not kept, as small as it could be made. */
export interface Failure {
  readonly seed: number
  readonly theme: string
  readonly isShrunk: boolean
  readonly steps: readonly string[]
  /** The first of each rule. */
  readonly violations: readonly Shown[]
  /** To be played again. */
  readonly schedule: unknown
}

export interface Shown {
  readonly rule: string
  readonly promise: string
  readonly text: string
  readonly owner: string
  readonly atMs: number
  readonly count: number
  readonly timeline?: Timeline
}

/** Without what is drawn only. */
export function jsonOf({ failures, ...outcome }: Outcome): string {
  const plain = failures.map(({ violations, ...failure }) => ({
    ...failure,
    violations: violations.map(({ timeline: _, ...shown }) => shown),
  }))
  return JSON.stringify({ ...outcome, failures: plain }, undefined, 2)
}
