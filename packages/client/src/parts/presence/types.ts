/// <reference lib="esnext.disposable" preserve="true" />
import type { Jsonified } from '../../core/topics/jsonified.js'
import type { WebMQError } from '../../protocol/errors.js'

/** A present member. */
export interface Member<D = unknown> {
  /** Unique within the key, and the same across reconnects of its client. */
  readonly id: string
  /** User of the member's token; absent for anonymous members. */
  readonly userId?: string
  /** The member's own data. */
  readonly data?: D
}

/** All members of one user. Every anonymous member is a user of its own. */
export interface User<D = unknown> {
  readonly userId?: string
  /** At least one. */
  readonly members: readonly Member<D>[]
}

/** Events of {@link Presence} and the arguments of their handlers. */
export interface PresenceEvents<D = unknown> {
  /** A member entered. Also emitted for each member that was present when the first handler was added. */
  enter: Member<D>
  /** A member changed its data. */
  update: Member<D>
  /** A member left; with its last data. */
  leave: Member<D>
  /** The first member of a user entered. */
  'user-enter': User<D>
  /** The last member of a user left; `members` are those of before. */
  'user-leave': User<D>
  /**
   * All present members: after the first answer, and after every reconnect, right after the events of the difference.
   */
  sync: readonly Member<D>[]
  /** The server has refused or ended an entry or a watch. */
  error: WebMQError
}

/**
 * The presence at one key, and the client's own. After a reconnect it enters and watches again by itself, and emits the
 * difference. So the events alone are enough to keep a list of members.
 */
export interface Presence<D = unknown, Seen = Jsonified<D>> extends Disposable {
  readonly key: string
  /** The id under which others see this client; `undefined` until it has entered. */
  readonly id: string | undefined
  /**
   * Makes this client present, or changes its data. Waits for a connection, and resolves when the server has accepted
   * it.
   * @param data A JSON value; `undefined` for none.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_PAYLOAD_INVALID`, `E_PAYLOAD_TOO_LARGE`, `E_PRESENCE_LIMIT`: the client is
   * not present; `E_ABORTED` if it left first, `E_CLOSED`.
   */
  enter(data?: D): Promise<void>
  /** Same as `enter`, for readable code after an entry. */
  update(data: D): Promise<void>
  /**
   * Leaves. Resolves when the server knows, or when there is no connection. A client with several present handles
   * leaves with the last.
   */
  leave(): Promise<void>
  /**
   * The present members: from the server, or from local state while there are handlers.
   * @throws {WebMQError} `E_FORBIDDEN`, `E_TIMEOUT`, `E_CLOSED`.
   */
  get(): Promise<readonly Member<Seen>[]>
  /** The same by user: a user is present while any of its members is. */
  users(): Promise<readonly User<Seen>[]>
  /**
   * Calls `handler` at every `event`, and returns a function that removes it. The first handler starts to watch the
   * key.
   */
  on<E extends keyof PresenceEvents<Seen>>(event: E, handler: (event: PresenceEvents<Seen>[E]) => unknown): () => void
  /** Leaves, and removes all handlers; the handle can be used again. Resolves as `leave` does. */
  close(): Promise<void>
}
