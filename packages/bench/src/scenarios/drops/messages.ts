import type { Counts, Published } from 'webmq-check/systems'
import type { DropPlan } from './drop-plan.js'
import type { PeerName } from './peers.js'

/** The clients of one process. */
export interface AudiencePlan {
  readonly peer: PeerName
  /** Client `c` connects to entry `c mod length`. */
  readonly ports: readonly number[]
  /** Of all processes. This one plays those whose number modulo `processCount` is `process`. */
  readonly clients: number
  readonly process: number
  readonly processCount: number
  /** Client `c` listens to room `c mod rooms`. */
  readonly rooms: number
}

/** To the process: who it plays; drop their networks; no more will be published, so count. */
export type AudienceCommand =
  | { readonly type: 'plan'; readonly plan: AudiencePlan }
  | { readonly type: 'drops'; readonly drops: DropPlan }
  | { readonly type: 'finish'; readonly published: readonly Published[] }

export type AudienceEvent =
  | { readonly type: 'ready' }
  /** Ten times per second. */
  | { readonly type: 'status'; readonly readyCount: number; readonly awayCount: number; readonly heardCount: number }
  | { readonly type: 'log'; readonly log: AudienceLog }
  | { readonly type: 'failed'; readonly reason: string }

export interface AudienceLog {
  readonly counts: Counts
  readonly awayMs: readonly number[]
  readonly backMs: readonly number[]
  /** Clients that were away at the end. */
  readonly missingCount: number
  /** Clients that got every message exactly once. */
  readonly wholeCount: number
  /** Some of what was wrong, in words. */
  readonly examples: readonly string[]
  readonly cpuSeconds: number
  /** Of its core, that the busiest process used since all its clients listened, 0 to 1. */
  readonly busiestShare: number
}

export function roomOf(number: number): string {
  return `room.${number}`
}
