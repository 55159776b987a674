import type { MicrosecondSummary } from './events.js'

/** What the virtual users are told and tell; `packages/bench/loadgen/README.md` explains every field. */
export interface VirtualUsersPlan {
  readonly port: number
  readonly path?: string
  /** Users at the beginning. */
  readonly startUsers: number
  readonly stages: readonly VirtualUsersStage[]
  readonly channels: number
  /** What a key begins with; its number follows. */
  readonly keyPrefix: string
  /** One user in so many sends. */
  readonly usersPerSender: number
  /** In steps of a tenth. */
  readonly sendingRate: number
  readonly rounds: number
  readonly history: HistoryRequest
  readonly seed: number
  /** For what a user waits for. */
  readonly timeoutMs: number
}

/** The number of users changes evenly, for so long, to so many. */
export interface VirtualUsersStage {
  readonly durationMs: number
  readonly users: number
}

/** How the history is asked for. */
export interface HistoryRequest {
  /** Options of the first request. */
  readonly first: string
  /** Options, beside `since`, of those for what the last answer had no room for. */
  readonly next: string
  /** What is asked for, to know what has to come. */
  readonly windowMs: number
}

/** One of the seed's checks. */
export interface CheckCount {
  readonly passes: number
  readonly fails: number
}

/** What is wrong with sequences of messages. */
export interface FaultCount {
  readonly expected: number
  readonly misses: number
  readonly duplicates: number
  readonly inversions: number
}

/** Answer to `run`. */
export interface VirtualUsersReport {
  readonly durationUs: number
  readonly maxUsers: number
  readonly iterations: number
  /** Of these, those that ended before their time. */
  readonly interrupted: number
  readonly sessions: number
  readonly checks: Readonly<Record<'connection' | 'subscription' | 'history', CheckCount>>
  readonly acksReceived: number
  readonly broadcastsSent: number
  readonly broadcastsReceived: number
  /** Sent before the receiver's listen was answered, live or replayed: as the seed counts. */
  readonly historyReceived: number
  /** All that came as answers to requests for the history. */
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
    /** The history, and then what came live after the position of its answer. */
    readonly joined: FaultCount
  }
}

/** What one client replays, and for how long. */
export interface ReplayPlan {
  readonly port: number
  readonly path: string
  readonly key: string
  /** Options of the first `listen`. */
  readonly first: string
  /** What has to come: the messages numbered from 1 to this. */
  readonly messages: number
  /** Replays follow each other for so long; one is made in any case. */
  readonly durationMs: number
  readonly timeoutMs: number
}

/** Answer to `replay`. */
export interface ReplayReport {
  readonly replays: number
  readonly messages: number
  readonly pages: number
  readonly misses: number
  /** Messages that were not after the one before. */
  readonly disorders: number
  readonly gaps: number
  readonly durationUs: number
  /** Of it, from the first `listen` of a replay to its last message. */
  readonly replayedUs: number
  /** Per replay. */
  readonly replayUs: MicrosecondSummary | null
  readonly cpuUs: number
}

/** Answer to `stats`. */
export interface VirtualUsersStats {
  readonly users: number
  readonly iterations: number
  readonly broadcastsSent: number
  readonly broadcastsReceived: number
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
}
