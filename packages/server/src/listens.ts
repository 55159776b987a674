import type { Capture, Captures } from './captures.js'
import type { Interest } from './interest.js'
import { andThen, type MaybePromise } from './maybe-promise.js'
import type { ConnectionId, GroupId, Transport } from './transport.js'

/** What {@link Listens} works with; one per node. */
export interface ListensContext {
  readonly transport: Pick<Transport, 'join' | 'leave'>
  readonly interest: Pick<Interest, 'retain' | 'release'>
  readonly captures: Captures
  /** Bytes of payload kept for a listen that waits for the broker. */
  readonly maxCaptureBytes: number
}

/** A listen on its way: the broker is asked, live messages are captured, the connection gets nothing yet. */
export interface ListenOpening {
  /** Settles when the pattern is live on this node. */
  readonly bound: MaybePromise<void>
  readonly capture: Capture
  /** Goes live: whatever the transport is given from now on comes after what it was given before. */
  commit(): void
  /** Leaves everything as it was. */
  abort(): void
}

/** The patterns that one connection listens with. */
export class Listens {
  readonly #connection: ConnectionId
  readonly #context: ListensContext
  readonly #groups = new Map<string, GroupId>()
  #isClosed = false

  constructor(connection: ConnectionId, context: ListensContext) {
    this.#connection = connection
    this.#context = context
  }

  get size(): number {
    return this.#groups.size
  }

  has(pattern: string): boolean {
    return this.#groups.has(pattern)
  }

  /**
   * Begins to listen. A pattern that is listened with already stays so, whatever becomes of the opening.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`, here or from `bound`, which then is followed by `abort`.
   */
  open(pattern: string): ListenOpening {
    const { captures, interest, maxCaptureBytes } = this.#context
    const isNew = !this.#groups.has(pattern)
    const capture = captures.start(pattern, maxCaptureBytes)
    let group: GroupId | undefined
    let isOver = false
    const end = () => {
      isOver = true
      captures.end(capture)
    }
    const retained = (retainedGroup: GroupId) => {
      group = retainedGroup
    }
    let bound: MaybePromise<void>
    try {
      bound = isNew ? andThen(interest.retain(pattern), retained) : undefined
    } catch (error) {
      end()
      throw error
    }
    const abort = () => {
      if (isOver) return
      end()
      if (group !== undefined) interest.release(pattern)
    }
    const commit = () => {
      if (this.#isClosed) return abort()
      end()
      if (group === undefined) return
      this.#groups.set(pattern, group)
      this.#context.transport.join(this.#connection, group)
    }
    return { bound, capture, commit, abort }
  }

  /** Ends a listen; returns whether there was one. */
  end(pattern: string): boolean {
    const group = this.#groups.get(pattern)
    if (group === undefined) return false
    this.#groups.delete(pattern)
    this.#context.transport.leave(this.#connection, group)
    this.#context.interest.release(pattern)
    return true
  }

  /** Ends the listens that are no longer granted and returns their patterns. */
  revoke(isGranted: (pattern: string) => boolean): string[] {
    return [...this.#groups.keys()].filter((pattern) => !isGranted(pattern) && this.end(pattern))
  }

  /** The connection is gone. */
  close(): void {
    this.#isClosed = true
    for (const pattern of this.#groups.keys()) this.#context.interest.release(pattern)
    this.#groups.clear()
  }
}
