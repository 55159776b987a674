import type { MicrosecondSummary } from '../loadgen/events.js'

/**
 * Commands and answers of a target, one JSON object per line on its standard input and output. They are the same for
 * Node and for `webmq-loadgen raw`, a program in Rust.
 */
export type TargetCommand =
  /** As fast as possible without loss: waits while too many bytes wait in the server. */
  | {
      readonly cmd: 'publish-flood'
      readonly durationMs: number
      readonly payloadBytes: number
      readonly batch?: number
    }
  /**
   * As fast as another node delivers. At most `maxInFlight` messages are under way to the sockets of that node's
   * connections, by its `DeliveredCount`.
   */
  | {
      readonly cmd: 'publish-relayed'
      readonly durationMs: number
      readonly payloadBytes: number
      readonly batch: number
      readonly maxInFlight: number
    }
  /** On an absolute schedule: a late message does not delay later ones. */
  | {
      readonly cmd: 'publish-paced'
      readonly perSecond: number
      readonly durationMs: number
      readonly payloadBytes: number
      /** Whether to wait while too many bytes wait in the server; default true. It would also wait for slow readers. */
      readonly isThrottled?: boolean
      /** Only for targets with patterns; absent: the key of all ticks. */
      readonly key?: string
      /** Only for targets with rooms: how many each message goes to, `bench.room.0` and so on. */
      readonly keyCount?: number
      /** With `keyCount`: as an append to the stream of each. */
      readonly isStream?: boolean
    }
  /** To this many keys without listeners, in turn: measures the cost of matching. */
  | { readonly cmd: 'publish-keys'; readonly count: number; readonly distinctKeys: number }
  /** Collects garbage, to make memory comparable. */
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

/** Answer to the publishing commands, once nothing waits in the server. */
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
  /** Since its start, all threads, by the kernel's accounting: as in `/proc/<pid>/stat`, but in microseconds. */
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
  readonly rssBytes: number
  /** Largest so far; only from Node. */
  readonly peakRssBytes?: number
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
  /** Publishes that were refused for a time, since the start; only from servers that count them. */
  readonly refusedCount?: number
  readonly connections: number
}

/** Paths of PEM files. */
export interface TlsFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** Settings of a target; the argument of its script, as JSON. */
export interface TargetSettings {
  /** For targets of Node: flags of the process, which its program does not see. */
  readonly nodeFlags?: readonly string[]
  /** Watches no event loop, which takes a timer every 10 ms: for loads that are mostly rest. */
  readonly isUnwatched?: true
  /** HS256; connections need a token. Absent: anyone may connect. */
  readonly jwtSecret?: string
  /** Asked by servers of WebMQ. */
  readonly webhook?: { readonly url: string; readonly events: readonly string[] }
  /** Proxies that WebMQ believes when they name a client. */
  readonly trustedProxies?: readonly string[]
  /** Serves TLS only. */
  readonly tls?: TlsFiles
  /** I/O threads, where there is a choice. */
  readonly threads?: number
  readonly compression?: boolean
  readonly compressionThresholdBytes?: number
  /** Limit of waiting bytes before a connection is closed; absent: the target's own default. */
  readonly maxOutboxBytes?: number
  /** Makes targets keep messages that they would silently drop. */
  readonly isLossless?: boolean
  /** For socketio: it keeps messages for connections that come back. */
  readonly recovery?: boolean
  /** For uws: this package of uWebSockets.js; absent: the newest that loads. */
  readonly uwsPackage?: string
  /** Of the checkout whose server webmq.mjs starts; absent: this one. */
  readonly root?: string
  /** With several nodes: options that connect this one with the others. */
  readonly broker?: string
  readonly brokerNamespace?: string
  readonly brokerTimeoutMs?: number
  readonly mesh?: { readonly listen: string; readonly secret: string }
  /** Bytes of each message; makes the node report its deliveries by a `DeliveredCount`. */
  readonly toldPayloadBytes?: number
  readonly maxListensPerConnection?: number
  /** WebMQ's history rules, and its limit over all keys. */
  readonly history?: readonly string[]
  readonly historyMaxMessages?: number
  readonly historyMaxBytes?: number
  /** For the HTTP API. */
  readonly apiKeys?: readonly string[]
  /** As large as the largest message of the run. */
  readonly maxPayloadBytes?: number
}
