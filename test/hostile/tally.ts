/** Counts by name. */
export type Counts = Readonly<Record<string, number>>

/** What hostile clients did and got, summed over all of them. */
export interface TallyReport {
  /** Messages, frames, requests and connects that were sent. */
  readonly operationCount: number
  /** TCP connections that were opened. */
  readonly connectCount: number
  /** Bytes that the sockets took. */
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Answers to HTTP requests, by status. */
  readonly statuses: Counts
  /** Ends of connections, by close code, or `reset`, `end` or the error of the socket without one. */
  readonly closes: Counts
  /** Messages from the server, by verb. */
  readonly verbs: Counts
  /** Errors from the server, by code. */
  readonly errors: Counts
}

/** Counts what hostile clients do and get. */
export class Tally {
  operationCount = 0
  connectCount = 0
  sentBytes = 0
  receivedBytes = 0
  readonly #statuses = new Map<string, number>()
  readonly #closes = new Map<string, number>()
  readonly #verbs = new Map<string, number>()
  readonly #errors = new Map<string, number>()

  status(status: string): void {
    increment(this.#statuses, status)
  }

  close(reason: string): void {
    increment(this.#closes, reason)
  }

  verb(verb: string): void {
    increment(this.#verbs, verb)
  }

  error(code: string): void {
    increment(this.#errors, code)
  }

  report(): TallyReport {
    const { operationCount, connectCount, sentBytes, receivedBytes } = this
    return {
      operationCount,
      connectCount,
      sentBytes,
      receivedBytes,
      statuses: Object.fromEntries(this.#statuses),
      closes: Object.fromEntries(this.#closes),
      verbs: Object.fromEntries(this.#verbs),
      errors: Object.fromEntries(this.#errors),
    }
  }
}

/** Names beyond this many count as one, so that a server cannot make the report long. */
const MAX_NAMES = 40

function increment(counts: Map<string, number>, name: string): void {
  const known = counts.has(name) || counts.size < MAX_NAMES ? name : 'others'
  counts.set(known, (counts.get(known) ?? 0) + 1)
}
