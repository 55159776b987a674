/** The engine's rule (ADR 4): above this share of its time, an I/O thread rests between flushes. */
export const BUSY_SHARE = 0.75
/** Share of its time that a resting thread writes. */
const WRITING_SHARE = 0.4
/** The server's default `flushIntervalMs`: the longest rest. */
export const MAX_REST_S = 0.01
const MIN_REST_S = 0.001
/** The cycle settles in fewer. */
const ROUNDS = 40

/** The connections of one I/O thread and what they are sent. */
export interface ThreadLoad {
  readonly connections: number
  /** To each connection. */
  readonly messagesPerSecond: number
  /** CPU time of a write, and of a message in it. */
  readonly writeS: number
  readonly frameS: number
}

/** How the thread writes. */
export interface Pacing {
  readonly framesPerWrite: number
  /** Of its time, 0 and up; above 1 it does not keep up. */
  readonly busyShare: number
  /** From one flush to the next; 0: everything leaves in its turn. */
  readonly cycleS: number
}

/** How many messages one write carries. Cost: O(1). */
export function paceOf({ connections, messagesPerSecond, writeS, frameS }: ThreadLoad): Pacing {
  const deliveries = connections * messagesPerSecond
  const framesShare = deliveries * frameS
  const separateShare = deliveries * writeS + framesShare
  if (separateShare < BUSY_SHARE || deliveries === 0) return { framesPerWrite: 1, busyShare: separateShare, cycleS: 0 }
  let cycleS = MIN_REST_S
  let members = 0
  let flushS = 0
  for (let round = 0; round < ROUNDS; round++) {
    // Of a flush only connections that got something are written to.
    members = connections * -Math.expm1(-messagesPerSecond * cycleS)
    flushS = members * writeS + deliveries * cycleS * frameS
    cycleS = flushS + restS(flushS)
  }
  return {
    framesPerWrite: Math.max(1, (deliveries * cycleS) / Math.max(1e-9, members)),
    busyShare: flushS / cycleS,
    cycleS,
  }
}

/** The rest after a flush that takes this long. */
export function restS(flushS: number): number {
  return Math.min(MAX_REST_S, Math.max(MIN_REST_S, flushS * (1 / WRITING_SHARE - 1)))
}
