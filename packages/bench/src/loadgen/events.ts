/** Commands and answers of the load generator; `packages/bench/loadgen/README.md` says what they do. */
export interface MicrosecondSummary {
  readonly count: number
  readonly mean: number
  readonly min: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly p9999: number
  readonly max: number
}

export interface ConnectOptions {
  readonly count: number
  /** Absent: `ports`, or those of all `groups`. */
  readonly port?: number
  /** Several servers, in turn. */
  readonly ports?: readonly number[]
  /** Absent: all are in group 0. A group's number is its place; `port` is that of all of its connections. */
  readonly groups?: readonly { readonly count: number; readonly port?: number }[]
  /** IP address; absent: 127.0.0.1. */
  readonly host?: string
  /** For the header `Host`; absent: address and port. */
  readonly authority?: string
  readonly path?: string
  readonly subprotocol?: string | null
  /** Of the connections, in turn; sent as `Authorization: Bearer …`. Absent or empty: none. */
  readonly tokens?: readonly string[]
  readonly sourceAddresses?: readonly string[]
  /** Handshakes in flight. */
  readonly batch?: number
  /** `batches`: the next batch starts when the last one is ready entirely. */
  readonly batchMode?: 'window' | 'batches'
  /** When a connection counts: `upgrade`, `welcome` or `text:PREFIX`. */
  readonly ready?: string
  readonly compression?: boolean
  readonly replies?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  /** Receive buffer of the system per connection; absent: the system decides. */
  readonly receiveBufferBytes?: number
  /** Most connects per second; absent: as many as `batch` allows. */
  readonly perSecond?: number
  readonly tls?: TlsOptions
}

export interface TlsOptions {
  /** For SNI and the check of the certificate. */
  readonly serverName: string
  /** Accepts every certificate; default: those of Mozilla's authorities and of `ca`. */
  readonly insecure?: boolean
  /** Further authorities, as PEM. */
  readonly ca?: string
  /** Whether tickets of earlier connections are used; default true. */
  readonly resume?: boolean
}

export interface Connected {
  readonly ok: number
  readonly failed: number
  readonly durationUs: number
  /** connect() to ready, per connection. */
  readonly latencyUs: MicrosecondSummary | null
  readonly errors: Readonly<Record<string, number>>
  /** Handshakes, by cipher suite, and those of them with a ticket; `null` without TLS. */
  readonly tls: { readonly resumed: number; readonly suites: Readonly<Record<string, number>> } | null
  readonly open: number
}

/** How a window counts. */
export interface CountOptions {
  /** Only messages with a `"seq":<digits>` count as frames. */
  readonly seqField?: boolean
  /** Per frame; costs, and means nothing in a flood. */
  readonly latency?: boolean
  /** Per `seq`, until its last receiver. */
  readonly fanout?: boolean
  /** The first number that everybody should get. */
  readonly firstSeq?: number
  /** Of `ts_us`; default `monotonic`. */
  readonly clock?: 'monotonic' | 'wall'
  /** Latencies per group and `seq`; replaces `fanout`. */
  readonly bySeq?: boolean
  readonly timelineMs?: number
}

export interface CountStopOptions {
  /** Everybody should get this one last. */
  readonly lastSeq?: number
  /** The same by group. */
  readonly lastSeqs?: readonly number[]
  /** Otherwise when no frame has come for this long. */
  readonly quietMs?: number
  readonly timeoutMs?: number
}

export interface Counted {
  readonly durationUs: number
  readonly frames: number
  readonly otherFrames: number
  readonly compressedFrames: number
  readonly payloadBytes: number
  readonly wireBytes: number
  readonly reads: number
  readonly gapCount: number
  readonly duplicateCount: number
  readonly reorderedCount: number
  readonly missingCount: number
  readonly connections: number
  readonly connectionsSilent: number
  /** Whether `lastSeq` has come everywhere. */
  readonly complete: boolean
  readonly latencyUs: MicrosecondSummary | null
  readonly completeFanoutUs: MicrosecondSummary | null
  readonly incompleteFanouts: number
  readonly firstFrameUs: number
  readonly lastFrameUs: number
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
  /** Of the window, 0 to 1. */
  readonly busiestThreadShare: number
  readonly timeline: readonly { readonly atMs: number; readonly frames: number }[]
  readonly bySeq?: readonly MessageReceipts[]
  /** Receipts before `ts_us`; only with `bySeq`. */
  readonly earlyReceipts?: number
  /** Receipts that are not in `bySeq`; only with `bySeq`. */
  readonly receiptsNotKept?: number
  readonly slow: {
    readonly connections: number
    readonly frames: number
    readonly gapCount: number
    readonly duplicateCount: number
  } | null
}

/** The receipts of one message by the connections of its group, in microseconds. */
export interface MessageReceipts {
  readonly group: number
  readonly seq: number
  /** Connections that received it. */
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

/** A frame to send: a text, or the bytes of a binary or compressed message. */
export type InboundFrame = string | { readonly base64: string; readonly binary: boolean; readonly compressed?: boolean }

export interface FloodInOptions {
  readonly durationMs: number
  readonly frame: InboundFrame | readonly InboundFrame[]
  readonly connections?: number
  readonly mode?: 'flood' | 'paced'
  /** Paced: over all of the connections. */
  readonly perSecond?: number
  readonly pipelineBytes?: number
}

export interface FloodedIn {
  /** Frames that the sockets took; not a throughput. */
  readonly writtenFrames: number
  readonly writtenBytes: number
  readonly payloadBytes: number
  readonly durationUs: number
  /** Connections whose last frame could not be finished. */
  readonly unfinished: number
  readonly lateUs: MicrosecondSummary | null
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
}

export interface PingOptions {
  readonly perConnection: number
  /** From one ping of a connection to its next, at least; default 0: when the last is answered. */
  readonly intervalMs?: number
  readonly kind: 'app' | 'ws'
  readonly timeoutMs?: number
  readonly text?: string
  readonly await?: string
}

export interface Pinged {
  readonly count: number
  readonly missing: number
  readonly durationUs: number
  readonly latencyUs: MicrosecondSummary | null
}

export interface LoadgenStats {
  readonly open: number
  readonly connecting: number
  readonly closed: Readonly<Record<string, number>>
  /** Connections that compress. */
  readonly compressed: number
  readonly slow: number
  /** Of the current window. */
  readonly frames: number
  readonly wireBytes: number
  readonly threads: number
  /** Since the start, all threads. */
  readonly cpuUserUs: number
  readonly cpuSystemUs: number
  /** While the plan is played. */
  readonly users?: VirtualUsersStats
  readonly clients?: PlayedClientsStats
}

export interface VirtualUsersStats {
  readonly users: number
  readonly iterations: number
  readonly broadcastsSent: number
  readonly broadcastsReceived: number
}

export interface PlayedClientsStats {
  readonly connectedCount: number
  readonly publishedCount: number
  readonly deliveredCount: number
  readonly arrivedCount: number
  /** Threads that have sent everything. */
  readonly doneThreads: number
}
