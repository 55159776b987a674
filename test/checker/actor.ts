import type { NodeAddress, RunRecord } from './record.js'

/** What every actor is given. */
export interface ActorOptions {
  /** Unique in the run. */
  readonly name: string
  readonly record: RunRecord
  /**
   * Says where to connect next.
   * @param previous Name of the node that was tried last: an actor that moves wants another one.
   * @returns `undefined` if there is none now; the actor asks again soon.
   */
  readonly chooseNode: (previous: string | undefined) => NodeAddress | undefined
  /** Milliseconds since the run began. */
  readonly nowMs: () => number
  /** In [0, 1); from the seed of the run. */
  readonly random: () => number
}
