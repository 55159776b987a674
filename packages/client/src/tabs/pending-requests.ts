import type { Frame } from './frame.js'
import type { Session } from './session.js'

/** Requests of one tab that may wait for answers. The client itself sends no more than 16,384 publishes. */
const MAX_REQUESTS = 20_000

/** A request that waits for its answer. */
export interface PendingRequest {
  readonly session: Session
  /** As the tab, or the link for it, has sent it. */
  readonly fields: readonly string[]
  readonly frame: Frame
}

/** The requests of all tabs, by the id that each has on the connection. */
export class PendingRequests {
  readonly #byId = new Map<string, PendingRequest>()
  readonly #counts = new Map<Session, number>()

  /** Whether the tab may send no more for now. */
  isFull(session: Session): boolean {
    return this.#countOf(session) >= MAX_REQUESTS
  }

  add(id: string, request: PendingRequest): void {
    this.#byId.set(id, request)
    this.#counts.set(request.session, this.#countOf(request.session) + 1)
  }

  get(id: string): PendingRequest | undefined {
    return this.#byId.get(id)
  }

  /** The request has its last answer. */
  settle(id: string): PendingRequest | undefined {
    const request = this.#byId.get(id)
    if (!request) return undefined
    this.#byId.delete(id)
    // A tab that has gone is not counted any more.
    if (this.#counts.has(request.session)) this.#counts.set(request.session, this.#countOf(request.session) - 1)
    return request
  }

  /** A tab has gone. Its requests stay: a replay that belongs to one of them is for nobody else. */
  forget(session: Session): void {
    this.#counts.delete(session)
  }

  #countOf(session: Session): number {
    return this.#counts.get(session) ?? 0
  }
}
