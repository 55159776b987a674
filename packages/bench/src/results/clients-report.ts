import type { BrokerKind } from '../brokers/broker-choice.js'
import type { LatencyBars, LatencySummary } from '../measure/latency-histogram.js'
import type { ServerOptions } from '../options.js'
import type { RowVerdict } from './result.js'

/** What plays the clients: the client library in Node, or the load generator in Rust. */
export const CLIENTS_BY = ['library', 'generator'] as const

/** What serves: WebMQ, or a server by hand on uWebSockets.js and the client of the broker. */
export const CLIENTS_TARGETS = ['webmq', 'by-hand'] as const

export interface ClientsConfig {
  /** Absent: `webmq`. */
  readonly target?: (typeof CLIENTS_TARGETS)[number]
  /** Of the checkout whose server is measured; absent: this one. */
  readonly root?: string
  readonly clients: number
  readonly backends: number
  /** Keys per client; never more than the pool has. */
  readonly listens: number
  /** Messages per second and client. */
  readonly publishRate: number
  readonly keyPoolSize: number
  /** Seconds. */
  readonly duration: number
  /** Seconds of the same traffic before, not counted. */
  readonly warmup: number
  /** Bytes of JSON. */
  readonly messageSize: number
  readonly broker: BrokerKind
  /** Address of the given broker, without passwords; absent: the run starts its own. */
  readonly brokerAddress?: string
  readonly transport: ServerOptions['transport']
  readonly clientsBy: (typeof CLIENTS_BY)[number]
  readonly seed: number
  /** Threads that play the clients. */
  readonly workers: number
}

/** The figures of one backend and of the clients connected to it. */
export interface BackendResult {
  readonly backend: number
  readonly port: number
  readonly clientCount: number
  readonly publishedCount: number
  readonly deliveredCount: number
  /** Deliveries to this backend's clients that arrived within the window, per second of it. */
  readonly deliveredPerSecond: number
  readonly latencyMs: LatencySummary
  /** From the start of the window to the end of the drain. */
  readonly serverCpuSeconds: number
  readonly serverRssBytes: number
  readonly serverPeakRssBytes: number
  readonly serverEventLoopLagMs: LatencySummary
}

/** The figures of a run; the JSON file holds exactly these under `results`. */
export interface ClientsResults {
  readonly publishedCount: number
  readonly expectedCount: number
  /** First copies only: a duplicate cannot stand in for a loss. */
  readonly deliveredCount: number
  readonly lossRatio: number
  readonly duplicateCount: number
  readonly reorderedCount: number
  readonly fanOutRatio: number
  readonly drainMs: number
  readonly latencyMs: LatencySummary
  readonly perBackend: readonly BackendResult[]
}

/** Cores; 0.5 is half of one. */
export interface CoresUsed {
  readonly available: number
  /** By any process of the machine. */
  readonly busy: number
  readonly generator: number
  /** 0 when they are not the run's own. */
  readonly servers: number
  /** `null` when it is part of the servers, or not the run's own. */
  readonly broker: number | null
}

/** The window over time; every line has one value per step, `null` where it is not known. */
export interface ClientsOverTime {
  readonly stepMs: number
  readonly publishedPerSecond: readonly (number | null)[]
  readonly deliveredPerSecond: readonly (number | null)[]
  /** Cores that were busy, as in {@link CoresUsed}. */
  readonly cores: Readonly<Record<'machine' | 'servers' | 'generator' | 'broker', readonly (number | null)[]>>
}

/** The result with the facts to judge it. */
export interface ClientsReport {
  readonly verdict: RowVerdict
  /** As a sentence; `null` when the verdict is `ok`. */
  readonly verdictReason: string | null
  readonly results: ClientsResults
  /** Per second of the window; counts only events within it. */
  readonly rates: {
    readonly publishedPerSecond: number
    readonly expectedPerSecond: number
    readonly deliveredPerSecond: number
  }
  /** Any value above zero needs an explanation. */
  readonly irregularities: {
    readonly unexpectedCount: number
    readonly publishErrorCount: number
    /** Refusals for a time, after each of which the client sends the message again [P-10.7]. */
    readonly refusedCount: number
    readonly unacknowledgedCount: number
    readonly firstPublishError: string | null
    readonly reconnectCount: number
    /** Times that the server told a client that it may have missed messages. */
    readonly gapCount: number
    /** Errors that the clients reported on their own. */
    readonly clientErrorCount: number
    /** Connections that ended for good before the run did. */
    readonly closedCount: number
    readonly firstClose: string | null
    readonly hasDrainTimedOut: boolean
  }
  readonly server: {
    readonly cpuSeconds: number
    readonly deliveriesPerCpuSecond: number | null
    readonly rssBytes: number
  }
  readonly broker: {
    /** `null` when it is part of the servers, or was given by address. */
    readonly cpuSeconds: number | null
  }
  /** Servers and broker together; `null` when the broker was given by address. */
  readonly total: {
    readonly cpuSeconds: number | null
    readonly deliveriesPerCpuSecond: number | null
  }
  /** Cores that were busy on average of the window, and whose they were. */
  readonly cores: CoresUsed
  /** Absent in files of an older bench. */
  readonly overTime?: ClientsOverTime
  /** The distribution of `results.latencyMs`; absent when nothing arrived, and in files of an older bench. */
  readonly latencyBars?: LatencyBars
  /** Present when the user ended the run: the figures are of the time until then, without a drain. */
  readonly interrupted?: true
  readonly generator: {
    readonly cpuSeconds: number
    /** Of the busiest worker, 0 to 1. */
    readonly utilization: number
    readonly eventLoopLagMs: LatencySummary
    readonly sendLagMs: LatencySummary
  }
}
