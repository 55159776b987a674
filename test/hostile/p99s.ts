import type { Counted } from '../../packages/bench/src/loadgen/events.js'
import type { Probed } from './messages.js'

/** An attack may at most double a p99 and add this to it. */
const ALLOWED_MS = 5

/** What the honest clients of one window measured. */
export interface Window {
  readonly probed: Probed
  readonly counted: Counted
}

/** In ms; `null`: nothing arrived. */
interface P99s {
  readonly delivery: number | null
  readonly ping: number | null
}

export function p99sOf({ probed, counted }: Window): P99s {
  const us = counted.latencyUs?.p99
  return { delivery: us === undefined ? null : us / 1_000, ping: probed.pingMs.p99 }
}

/** The higher ones of two windows. */
export function worseOf(one: P99s, other: P99s): P99s {
  return {
    delivery: Math.max(one.delivery ?? 0, other.delivery ?? 0),
    ping: Math.max(one.ping ?? 0, other.ping ?? 0),
  }
}

/** The parts of the allowed p99s that an attack takes. */
export function sharesOf(p99: P99s, allowed: P99s): { readonly delivery: number; readonly ping: number } {
  return {
    delivery: shareOfAllowed(p99.delivery, allowed.delivery),
    ping: shareOfAllowed(p99.ping, allowed.ping),
  }
}

/** The part of the allowed p99 that an attack takes; infinite when nothing arrived. */
export function shareOfAllowed(p99: number | null, baselineP99: number | null): number {
  return p99 === null || baselineP99 === null ? Number.POSITIVE_INFINITY : p99 / (2 * baselineP99 + ALLOWED_MS)
}
