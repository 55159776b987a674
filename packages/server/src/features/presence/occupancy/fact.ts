/** A state of a pattern, for the backend. */
export interface Fact {
  readonly isOccupied: boolean
  /** Grows with each fact of a pattern, over all nodes: its time in Unix milliseconds, or one more than the last. */
  readonly generation: number
  /** The backend has taken it. */
  readonly isReported: boolean
}

/** Whether the first is as new as the second; one that was told is newer than the same that was not. */
export function covers(one: Fact | undefined, other: Fact): boolean {
  if (one === undefined || one.generation < other.generation) return false
  return one.generation > other.generation || one.isReported || !other.isReported
}

export function newerOf(one: Fact | undefined, other: Fact | undefined): Fact | undefined {
  return other !== undefined && !covers(one, other) ? other : one
}
