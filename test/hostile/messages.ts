import type { LatencySummary } from '../../packages/bench/src/measure/latency-histogram.js'
import type { Counts, TallyReport } from './tally.js'

/** Command of the process of hostile clients. */
export interface AttackCommand {
  readonly cmd: 'attack'
  readonly case: string
  readonly port: number
  readonly clients: number
  readonly durationMs: number
  readonly operationsPerSecond: number
  readonly bytesPerSecond: number
  readonly jwtSecret?: string
}

/** Answer to `attack`, when all clients have ended. */
export interface Attacked extends TallyReport {
  readonly event: 'attacked'
  /** User and system time of the process during the attack. */
  readonly cpuSeconds: number
  /** Errors of the clients themselves, which are bugs of the bench. */
  readonly bugs: Counts
}

/** Command of the prober: its clients connect. */
export interface ProbeConnectCommand {
  readonly cmd: 'connect'
  readonly port: number
  /** Each publishes to one key, `<prefix><n>`. */
  readonly publishers: number
  readonly keyPrefix: string
  readonly pingers: number
  readonly payloadBytes: number
  /** One per connection, if the server asks for tokens. */
  readonly tokens?: readonly string[]
}

/** Command of the prober: one window of paced publishing, pings and requests for `/health`. */
export interface ProbeCommand {
  readonly cmd: 'probe'
  readonly durationMs: number
  /** Messages per second, over all publishers. */
  readonly publishPerSecond: number
  readonly firstSeq: number
}

/** Answer to `probe`, when everything is answered or was given up. */
export interface Probed {
  readonly event: 'probed'
  readonly lastSeq: number
  readonly publishedCount: number
  /** Publishes that the server refused, by code; `unanswered` and `closed` are those without any answer. */
  readonly refusals: Counts
  readonly pingCount: number
  /** Until the answer; those without one count with the time that they have waited. */
  readonly pingMs: LatencySummary
  readonly unansweredPingCount: number
  readonly healthCount: number
  /** By status, or the error of the request; those that were not 200. */
  readonly healthFailures: Counts
  readonly healthMs: LatencySummary
  /** Honest connections of the prober that the server has ended so far, by close code. */
  readonly closes: Counts
  readonly cpuSeconds: number
  /** How late the prober's own timers fired. */
  readonly lagMs: LatencySummary
}
