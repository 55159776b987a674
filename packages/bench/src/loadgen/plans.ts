import type { WrittenPlan } from '../load/written-plan.js'
import type { MicrosecondSummary } from './events.js'

/** Plans that the load generator plays, and their answers; `packages/bench/loadgen/README.md` says what they do. */
export interface VirtualUsersPlan {
  readonly port: number
  readonly path?: string
  readonly startUsers: number
  readonly stages: readonly VirtualUsersStage[]
  readonly channels: number
  /** Prefix of a key, before its number. */
  readonly keyPrefix: string
  /** One user in this many sends. */
  readonly usersPerSender: number
  /** In steps of a tenth. */
  readonly sendingRate: number
  readonly rounds: number
  readonly history: HistoryRequest
  readonly seed: number
  /** Limit for a connection and for each answer. */
  readonly timeoutMs: number
}

/** The number of users changes evenly to `users`, within the duration. */
export interface VirtualUsersStage {
  readonly durationMs: number
  readonly users: number
}

/** The requests for the history. */
export interface HistoryRequest {
  /** Options of the first request. */
  readonly first: string
  /** Options, beside `since`, of requests after an incomplete answer. */
  readonly next: string
  /** Time span that the answers must cover. */
  readonly windowMs: number
}

export interface CheckCount {
  readonly passes: number
  readonly fails: number
}

export interface FaultCount {
  readonly expected: number
  readonly misses: number
  readonly duplicates: number
  readonly inversions: number
}

export interface VirtualUsersReport {
  readonly durationUs: number
  readonly maxUsers: number
  readonly iterations: number
  /** Of these, those that ended early. */
  readonly interrupted: number
  readonly sessions: number
  readonly checks: Readonly<Record<'connection' | 'subscription' | 'history', CheckCount>>
  readonly acksReceived: number
  readonly broadcastsSent: number
  readonly broadcastsReceived: number
  /** Sent before the receiver's listen was answered, live or replayed: AnyCable's definition. */
  readonly historyReceived: number
  /** All messages that came in answers to requests for the history. */
  readonly replayed: number
  readonly historyGaps: number
  readonly epochChanges: number
  readonly messagesSent: number
  readonly messagesReceived: number
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly rttUs: MicrosecondSummary | null
  readonly broadcastUs: MicrosecondSummary | null
  readonly historyUs: MicrosecondSummary | null
  readonly subackUs: MicrosecondSummary | null
  readonly connectingUs: MicrosecondSummary | null
  readonly iterationUs: MicrosecondSummary | null
  /** How late the generator's own timers were. */
  readonly lateUs: MicrosecondSummary | null
  /** Why iterations were interrupted. */
  readonly failures: Readonly<Record<string, number>>
  /** Errors that the server answered, by code. */
  readonly errors: Readonly<Record<string, number>>
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
  readonly rssBytes: number
  readonly verified: {
    readonly sessions: number
    readonly live: FaultCount
    readonly histories: number
    /** The history, and then the live messages after the position of its answer. */
    readonly joined: FaultCount
  }
}

/** The replays of one client. */
export interface ReplayPlan {
  readonly port: number
  readonly path: string
  /** One listen each, sent together. */
  readonly keys: readonly string[]
  /** Options of the first `listen`. */
  readonly first: string
  /** Of each key, the messages numbered from 1 to this must come. */
  readonly messages: number
  /** Key of the messages that the client publishes beside. */
  readonly publishKey: string
  readonly publishEveryMs: number
  /** Replays repeat for this long; at least one runs. */
  readonly durationMs: number
  readonly timeoutMs: number
}

export interface ReplayReport {
  readonly replays: number
  readonly messages: number
  readonly pages: number
  readonly misses: number
  /** Messages that did not follow the one before. */
  readonly disorders: number
  readonly gaps: number
  readonly durationUs: number
  /** Of it, from the first `listen` of a replay to the last message of all its listens. */
  readonly replayedUs: number
  readonly replayUs: MicrosecondSummary | null
  /** From a publish on the replaying connection to its `ok`. */
  readonly publishUs: MicrosecondSummary | null
  readonly cpuUs: number
}

/** Clients that publish and listen by a plan. */
export interface PlayedClientsPlan extends WrittenPlan {
  /** Client `c` connects to entry `c % length`, on 127.0.0.1. */
  readonly ports: readonly number[]
  readonly path: string
  /** Beginning of every key, without its dot. */
  readonly keyPrefix: string
}

/** Microseconds and how often each was recorded, ascending. */
export type Recorded = readonly (readonly [valueUs: number, count: number])[]

/** The counts of one thread. */
export interface PlayedTally {
  readonly perBackend: readonly {
    readonly backend: number
    readonly clientCount: number
    readonly publishedCount: number
    readonly deliveredCount: number
    readonly deliveredInWindowCount: number
    readonly duplicateCount: number
    readonly reorderedCount: number
    readonly unexpectedCount: number
    readonly latencyUs: Recorded
  }[]
  readonly expectedCount: number
  readonly publishedInWindowCount: number
  readonly acknowledgedCount: number
  readonly publishErrorCount: number
  readonly firstPublishError: string | null
  readonly gapCount: number
  readonly clientErrorCount: number
  readonly closedCount: number
  readonly firstClose: string | null
  readonly lastSendUs: number
  readonly lastArrivalUs: number
  readonly sendLagUs: Recorded
  readonly wakeLagUs: Recorded
  readonly utilization: number
}
