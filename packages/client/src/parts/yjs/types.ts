import type { Awareness } from 'y-protocols/awareness'
import type { AnyClient } from '../../core/of-client.js'

/** Options of {@link YjsProvider}. */
export interface ProviderOptions {
  /** Default: the client of `setup`. */
  readonly client?: AnyClient
  /** Default: a new one for the document. */
  readonly awareness?: Awareness
  /**
   * Time from a change to the snapshot that includes it; default 10,000. Less than the log keeps messages, or a client
   * that comes later lacks changes unless another one is there.
   */
  readonly snapshotAfterMs?: number
  /** Updates after which a snapshot comes earlier; default 500. Less than the log keeps. */
  readonly snapshotAfterUpdates?: number
  /** Limit of a snapshot, and of the parts of updates that wait for the rest; default 67,108,864. */
  readonly maxBytes?: number
  /** A number in [0, 1) to spread the work for one of the clients over time; default `Math.random`. */
  readonly random?: () => number
}

/** Events of {@link YjsProvider} and the arguments of their handlers. */
export interface ProviderEvents {
  /** Whether the document has everything that the log has; `false` while it is read again after a gap. */
  synced: boolean
  /** An update was refused or not readable. Goes to `console.error` if there is no handler. */
  error: unknown
}
