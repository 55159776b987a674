/** An answer to a request that is not fulfilled: a status, and a reason that programs can read. */
export class Refusal extends Error {
  readonly status: number
  readonly reason: string
  /** More members of the answer. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(status: number, reason: string, details: Readonly<Record<string, unknown>> = {}) {
    super(reason)
    this.status = status
    this.reason = reason
    this.details = details
  }
}
