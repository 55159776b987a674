import type { ConnectionId } from '../ports/transport.js'
import type { Session } from './session.js'

export class SessionTable implements Iterable<Session> {
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

  /** Removes and releases the session; `undefined` for a connection without one. For `isWanted` see {@link Session.release}. */
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
