/// <reference lib="esnext.disposable" preserve="true" />
import type { WebMQError } from '../protocol/index.js'

/** Somebody who is present. */
export interface Member<D = unknown> {
  /** Unique within the key, and the same over the reconnects of a client. */
  readonly id: string
  /** Whose token it was; absent for the anonymous. */
  readonly userId?: string
  /** What the member says of itself. */
  readonly data?: D
}

/** Everything that is present of one user; every anonymous member is a user of its own. */
export interface User<D = unknown> {
  readonly userId?: string
  /** At least one. */
  readonly members: readonly Member<D>[]
}

/** Events of {@link Presence} and what their handlers get. */
export interface PresenceEvents<D = unknown> {
  /** Somebody came; also everyone who was there when the first handler was added. */
  enter: Member<D>
  /** A member says something else of itself. */
  update: Member<D>
  /** Somebody left; as it was last. */
  leave: Member<D>
  /** The first member of a user came. */
  'user-enter': User<D>
  /** The last member of a user left; `members` are as they were before. */
  'user-leave': User<D>
  /** All who are present: after the first answer, and after every reconnect, whose differences were told just before. */
  sync: readonly Member<D>[]
  /** The server has refused, or ended, what was wanted. */
  error: WebMQError
}

/**
 * Who is present at one key, and whether this client is. Enters and watches again by itself after a reconnect, and tells the
 * difference: who follows the events knows who is there.
 */
export interface Presence<D = unknown> extends Disposable {
  readonly key: string
  /** The id under which others see this client; `undefined` until it has entered. */
  readonly id: string | undefined
  /**
   * Makes this client present, or changes what it says. Resolves when the server has it; waits for a connection.
   * @param data What JSON can say; `undefined` for nothing.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_PRESENCE_LIMIT`: it is then not present;
   *   `E_ABORTED` when it left before, `E_CLOSED`.
   */
  enter(data?: D): Promise<void>
  /** The same as `enter`, to be read in code that has entered. */
  update(data: D): Promise<void>
  /** Ends it; resolves when the server knows, or is not there. Present by several handles, a client leaves with the last. */
  leave(): Promise<void>
  /**
   * Who is present: what the server says, or what is known here while there are handlers.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_TIMEOUT`, `E_CLOSED`.
   */
  get(): Promise<readonly Member<D>[]>
  /** The same by user: one is present while one of its members is. */
  users(): Promise<readonly User<D>[]>
  /**
   * Calls `handler` at every `event`, and returns what ends that. From the first handler on the key is watched.
   */
  on<E extends keyof PresenceEvents<D>>(event: E, handler: (event: PresenceEvents<D>[E]) => unknown): () => void
  /** Leaves, and ends all handlers. */
  [Symbol.dispose](): void
}
