import type { WebMQError } from '../../protocol/errors.js'

/** Options of `state`. */
export interface StateOptions {
  /**
   * When listeners are called after changes: at the end of the turn of the event loop (default), once per animation frame,
   * or once per period, in milliseconds.
   */
  readonly every?: 'frame' | number | undefined
  /** Most keys; default 10,000. More end the store with `E_STATE_LIMIT`, which bounds its memory. */
  readonly maxKeys?: number
  /** Most characters or bytes of the payloads on the wire; default 16,777,216. As above. */
  readonly maxBytes?: number
}

/** What has changed since listeners were last called. */
export interface StateChanges<P> {
  /** New values, by key. */
  readonly set: ReadonlyMap<string, P>
  readonly removed: ReadonlySet<string>
}

/** A state that never changes. */
export interface StateSnapshot<P> {
  readonly entries: ReadonlyMap<string, P>
  readonly isStale: boolean
  readonly error: WebMQError | undefined
}

/** The last message of each key that a pattern matches. All members tell the state as of the last notification. */
export interface StateStore<P> extends Disposable {
  readonly pattern: string
  /**
   * Resolves when the state has arrived for the first time. Rejects if the listen is refused or the store is closed
   * first; ignoring the rejection does not crash the process.
   */
  readonly ready: Promise<void>
  /** Whether changes may be missing: before the state has arrived, without a connection, and after a gap. */
  readonly isStale: boolean
  /** Why the store has ended, if not by `close`. */
  readonly error: WebMQError | undefined
  readonly size: number
  /** The payload of the last message of a key; `undefined` if there is none. */
  get(key: string): P | undefined
  entries(): IterableIterator<[key: string, payload: P]>
  /** The same object until something changes, as `useSyncExternalStore` wants it. Cost: O(keys) after a change. */
  getSnapshot(): StateSnapshot<P>
  /** Calls `listener` after changes, and when `isStale` changes. Returns a function that removes it. */
  subscribe(listener: (changes: StateChanges<P>) => unknown): () => void
  /** Ends the store. It keeps its last state. */
  close(): void
}
