import type { ConnectionId } from '../ports/transport.js'
import type { Session } from './session.js'

/** The sessions of this node, by connection. */
export class Sessions implements Iterable<Session> {
  readonly #byConnection = new Map<ConnectionId, Session>()

  get size(): number {
    return this.#byConnection.size
  }

  add(session: Session): void {
    this.#byConnection.set(session.connection, session)
  }

  get(connection: ConnectionId): Session | undefined {
    return this.#byConnection.get(connection)
  }

  /** Takes the session out and lets go of what it holds; `undefined` for a connection that never got one. `isWanted` as in `release`. */
  remove(connection: ConnectionId, isWanted: boolean): Session | undefined {
    const session = this.#byConnection.get(connection)
    this.#byConnection.delete(connection)
    session?.release(isWanted)
    return session
  }

  [Symbol.iterator](): Iterator<Session> {
    return this.#byConnection.values()
  }
}
