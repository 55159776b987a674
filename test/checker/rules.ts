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
}
