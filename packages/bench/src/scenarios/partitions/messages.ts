import type { NodeBrokerOptions } from '../../brokers/running-broker.js'
import type { LatencySummary } from '../../measure/latency-histogram.js'

/** Options of a node that decide about its log. */
export interface NodeOptions extends NodeBrokerOptions {
  readonly history: readonly string[]
  readonly historyPartitions: number
  readonly brokerTimeoutMs: number
}

/** What the publishing node sends. */
export interface PublishPlan {
  /** In their order; each gets a message before the first gets its next. */
  readonly rooms: readonly number[]
  readonly perSecond: number
  readonly durationMs: number
  readonly payloadBytes: number
}

/** Commands to a node, one at a time. */
export type NodeCommand =
  | { readonly type: 'start'; readonly options: NodeOptions }
  /** Answered when all listens are live. */
  | { readonly type: 'listen'; readonly rooms: readonly number[] }
  /** Publishes one message to each room, which nobody counts. Answered when the broker has accepted all. */
  | { readonly type: 'prepare'; readonly plan: PublishPlan }
  /** Answered when the broker has accepted, or refused, all messages. */
  | { readonly type: 'publish'; readonly plan: PublishPlan }
  /** Answered at once. Latencies are those since the last `mark`. */
  | { readonly type: 'mark' }

/** Answer to `mark`. */
export interface NodeMark {
  readonly atUs: number
  /** User and system time, all threads. */
  readonly cpuSeconds: number
  readonly rssBytes: number
  /** Messages of the broker, wanted or not. */
  readonly receivedCount: number
  /** Messages that the broker has accepted. */
  readonly acceptedCount: number
  /** Messages that handlers got. */
  readonly deliveredCount: number
  readonly missedCount: number
  /** Twice, or out of order. */
  readonly disorderCount: number
  readonly gapCount: number
  readonly latencyMs: LatencySummary
}

/** Answer to `publish`. */
export interface PublishReport {
  readonly publishedCount: number
  readonly refusedCount: number
  /** By how much the latest message was late. */
  readonly maxLateMs: number
}

/** What a node answers to each command. */
export interface NodeAnswers {
  readonly start: null
  readonly listen: null
  readonly prepare: null
  readonly publish: PublishReport
  readonly mark: NodeMark
}

/** Node to bench. */
export type NodeEvent =
  | { readonly type: 'answer'; readonly id: number; readonly answer: NodeAnswers[keyof NodeAnswers] }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
