/** A place in a log, from somebody who does not know what stands there. */
export interface LogPlace {
  readonly epoch: string
  readonly offset: number
}

/** The log of a broker, as the nodes that share it see it. On a node without `history` it has no place, and takes none. */
export interface SharedLog {
  /**
   * How the broker's settings let it lose the end of the log that it has accepted, for the log of the server: a clause
   * such as `appendonly is no: …`. `undefined` when it loses nothing, when nobody can tell, and without a log. Only after
   * `start`.
   * @throws when the broker does not answer, or does not allow the question.
   */
  risk(): Promise<string | undefined>
  /**
   * Other nodes log other keys: what they publish may be missing in the log, from now on until a call with `false`. Until
   * then all reads but those of the state have a gap (`rules-differ`), and afterwards those from where the log ended at that
   * call, or before.
   * The log is no longer marked. Resolves when the broker knows that, or when it is not reached: it is told later.
   */
  dispute(isDisputed: boolean): Promise<void>
  /**
   * Whether the log is marked with the rules of this node: since its epoch began, all nodes have logged these keys. `true`
   * when this node has no log, or cannot know.
   */
  readonly isMarked: boolean
  /**
   * Looks again whether the log is marked: another node may have begun it anew. If it is not, and no other node knows what it
   * lacks, another epoch of it begins, marked with the rules of this node. Resolves when this node follows the log as it is
   * then, or stops.
   */
  reopen(isKnown: boolean): Promise<void>
  /**
   * The same was so up to this place, as another node says. Ignored when the log has another epoch.
   * @returns Whether this node did not know that.
   */
  doubt(upTo: LogPlace): boolean
  /** Up to where the log is in doubt: its end while it is disputed. `undefined` when it is not. */
  readonly doubtedUpTo: LogPlace | undefined
}
