/** Limits of a node at a RabbitMQ. */
export interface RabbitmqLimits {
  /** Time for one of several hosts, so that a host that swallows everything leaves time for the others. Default 5,000. */
  readonly hostTimeoutMs: number
  /** Patterns that are bound one by one; with more of them a node binds everything. Default 2,000. */
  readonly maxPatterns: number
}

/** Limits unless a caller sets others. */
export const DEFAULT_LIMITS: RabbitmqLimits = { hostTimeoutMs: 5_000, maxPatterns: 2_000 }
