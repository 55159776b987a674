/** Counters since the start; gauges at the moment of the call. */
export interface BrokerStats {
  /** Messages that the broker has accepted from this node. */
  readonly acceptedCount: number
  /** Publishes that were refused or given up. */
  readonly rejectedCount: number
  /** Messages that came over the network, wanted or not. */
  readonly receivedCount: number
  /**
   * Of those, duplicates, and messages that nobody on this node listened to: the cost of bindings that the broker
   * cannot express. Every node gets the whole log, so unwanted messages of the log are not counted.
   */
  readonly surplusCount: number
  /** Messages of other programs whose key or payload is not valid for WebMQ. */
  readonly malformedCount: number
  /** Publishes that wait to be accepted. */
  readonly pendingCount: number
  readonly pendingBytes: number
  /** Times the broker was lost. */
  readonly lostCount: number
  /** Reads, and calls of `reachEnd`, that were refused with `E_NODE_BEHIND`. */
  readonly behindCount: number
  /** This node's copy of the log; absent without the `history` capability. */
  readonly log?: LogStats
  /** Absent without the `retained` capability. */
  readonly retained?: RetainedStats
}

/** The retained messages that a node holds. */
export interface RetainedStats {
  readonly keyCount: number
  /** Bytes of keys and payloads. */
  readonly byteCount: number
  /** Messages that were not retained, because the log brought far more than the bounds allow. */
  readonly droppedCount: number
}

/** A node's copy of the log. */
export interface LogStats {
  readonly messageCount: number
  /** Bytes of payload and attributes. */
  readonly byteCount: number
  /** When the oldest message was logged, Unix time in milliseconds; 0 for an empty log. */
  readonly oldestTimeMs: number
  /** Age of the newest message when this node read it, by the clocks of broker and node; 0 for an embedded log. */
  readonly lagMs: number
  /** Part of the messages and of the time of a rule that the full log holds, by the rule that fares worst; 1: all. */
  readonly heldShare: number
}
