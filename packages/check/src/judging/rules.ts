/** What the system of a run promises. Times without a fault in effect are measured, see {@link Rules.settleMs}. */
export interface Rules {
  /** Patterns of the keys that are logged: the rules of `--history`. */
  readonly logged: readonly string[]
  /** `shared`: one log for all nodes. `per-node`: a mesh, and memory brokers. `none`: nothing is logged. */
  readonly log: 'shared' | 'per-node' | 'none'
  /** Whether the log survives a restart of what keeps it: of the broker, or of the node. */
  readonly isDurable: boolean
  /** What the log holds at least of its newest messages; beyond that a gap may be `history-expired`. */
  readonly keeps: { readonly messageCount: number; readonly ageMs: number }
  /** A second publish of an id within this time is a duplicate. */
  readonly dedupe: {
    readonly windowMs: number
    readonly maxIds: number
    /** Whether ids of keys that are not logged are known on all nodes. */
    readonly coversUnlogged: boolean
    /** Whether of two publishes at the same time, on two nodes, one is answered with `duplicate`. */
    readonly isExact: boolean
  }
  /** A publish is answered, with `ok` or `error`. */
  readonly answerWithinMs: number
  /** From `listen` to the last page of its replay. */
  readonly liveWithinMs: number
  /** From the `ok` of a publish to the message at every live listen that reads. */
  readonly deliverWithinMs: number
  /** What a fault has upset may take so long after it. */
  readonly settleMs: number
  /** Silence after which the writer of a stream is given up. */
  readonly leaseMs: number
}

/** The server's default: a publish and a listen wait so long for the broker. */
const BROKER_TIMEOUT_MS = 5_000
/** A node that lost its broker waits at most so long between two attempts to reach it. */
export const MAX_RECONNECT_MS = 1_000
/** What a machine that plays several schedules at once may add to a time. */
export const SLACK_MS = 3_000
export const ANSWER_WITHIN_MS = BROKER_TIMEOUT_MS + SLACK_MS
export const DELIVER_WITHIN_MS = 2_500
export const STREAM_LEASE_MS = 3_000
const LIVE_WITHIN_MS = 10_000
/** The server's defaults. */
const DEDUPE = { windowMs: 120_000, maxIds: 100_000, coversUnlogged: false }

/** What an installation promises in which nothing breaks, and of which nobody says how much its log holds. */
export function rulesOfLog(log: Rules['log'], logged: readonly string[]): Rules {
  return {
    logged,
    log,
    isDurable: log === 'shared',
    keeps: { messageCount: 0, ageMs: Number.POSITIVE_INFINITY },
    dedupe: { ...DEDUPE, isExact: log === 'shared' },
    answerWithinMs: ANSWER_WITHIN_MS,
    liveWithinMs: LIVE_WITHIN_MS,
    deliverWithinMs: DELIVER_WITHIN_MS,
    settleMs: SLACK_MS,
    leaseMs: STREAM_LEASE_MS,
  }
}
