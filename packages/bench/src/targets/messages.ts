import type { MicrosecondSummary } from '../loadgen/events.js'

/**
 * What a target is asked and answers, one JSON object per line on its standard input and output. It is the same for Node
 * and for anything else: `webmq-raw` is a program in Rust.
 */
export type TargetCommand =
  /** As fast as it can without losing anything: waits while too much waits in the server. */
  | {
      readonly cmd: 'publish-flood'
      readonly durationMs: number
      readonly payloadBytes: number
      readonly batch?: number
    }
  /**
   * As fast as another node delivers it: no more than `maxInFlight` messages are under way from here to the sockets of that node's
   * connections, as it tells by a `DeliveredCount`.
   */
  | {
      readonly cmd: 'publish-relayed'
      readonly durationMs: number
      readonly payloadBytes: number
      readonly batch: number
      readonly maxInFlight: number
    }
  /** On an absolute schedule: what is late does not make later messages late. */
  | {
      readonly cmd: 'publish-paced'
      readonly perSecond: number
      readonly durationMs: number
      readonly payloadBytes: number
      /** Whether to wait while too much waits in the server; default true. With slow readers it would wait for them. */
      readonly isThrottled?: boolean
    }
  /** To so many keys in turn, to which nobody listens: what finding that out costs. */
  | { readonly cmd: 'publish-keys'; readonly count: number; readonly distinctKeys: number }
  /** Collects garbage, so that memory can be compared. */
  | { readonly cmd: 'collect' }
  | { readonly cmd: 'sample' }
  | { readonly cmd: 'quit' }

/** First line of a target. */
export interface TargetListening {
  readonly event: 'listening'
  readonly port: number
  readonly pid: number
  readonly version: string
}

/** Answer to the publishing commands, when nothing waits in the server any more. */
export interface Published {
  readonly event: 'published'
  readonly count: number
  /** Of publishing. */
  readonly durationUs: number
  /** From the first publish until nothing waited. */
  readonly drainedUs: number
  readonly firstSeq: number
  readonly lastSeq: number
  /** Paced: the moment of publishing less the intended one. */
  readonly lateUs?: MicrosecondSummary | null
}

/** Answer to `publish-keys`. */
export interface KeysPublished {
  readonly event: 'keys-published'
  readonly count: number
  readonly durationUs: number
  /** User and system time of the thread that published. */
  readonly cpuUs: number
}

/** Answer to `sample`. */
export interface TargetSample {
  readonly event: 'sample'
  /** Since its start, all threads: what the kernel accounts to the process, as in `/proc/<pid>/stat`, but in microseconds. */
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
  readonly rssBytes: number
  /** Since the last sample; `null` where there is no event loop. */
  readonly eventLoopLagUs: {
    readonly p50: number
    readonly p95: number
    readonly p99: number
    readonly max: number
  } | null
  readonly deliveredCount?: number
  /** Messages that the session layer has processed since the start. */
  readonly receivedCount: number
  readonly connections: number
}

/** How a target is set up; the argument of its script, as JSON. */
export interface TargetSettings {
  /** For targets of Node: flags of the process, which its program does not see. */
  readonly nodeFlags?: readonly string[]
  /** HS256; a connection has to bring a token. Absent: anyone may connect. */
  readonly jwtSecret?: string
  /** I/O threads, where there is a choice. */
  readonly threads?: number
  readonly compression?: boolean
  /** What may wait for one connection before it is cut off; absent: the target's own default. */
  readonly maxOutboxBytes?: number
  /** Targets that drop in silence what waits too long keep it instead. */
  readonly isLossless?: boolean
  /** Where there are many nodes: how this one reaches the others. */
  readonly broker?: string
  readonly brokerNamespace?: string
  readonly brokerTimeoutMs?: number
  readonly mesh?: { readonly listen: string; readonly secret: string }
  /** Bytes of each message, of a node that is to tell by a `DeliveredCount` how many it has delivered. */
  readonly toldPayloadBytes?: number
  readonly maxListensPerConnection?: number
  /** Which keys WebMQ logs, as rules, and how much of all of them. */
  readonly history?: readonly string[]
  readonly historyMaxMessages?: number
  readonly historyMaxBytes?: number
  /** As large as the largest message of the run. */
  readonly maxPayloadBytes?: number
}
