import type { NodeBrokerOptions } from '../brokers/running-broker.js'
import type { LatencySummary } from '../measure/latency-histogram.js'

/** Settings of the servers under test. */
export interface BackendOptions extends NodeBrokerOptions {
  readonly transport: 'native' | 'ws' | 'uws' | 'auto'
  readonly maxListensPerConnection: number
  readonly maxPayloadBytes: number
  /** Which keys are logged, as rules; absent: the server's default. */
  readonly history?: readonly string[]
  /** Most messages in the log, over all keys; absent: the server's default. */
  readonly historyMaxMessages?: number
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  readonly compression?: boolean
  readonly compressionThresholdBytes?: number
}

/** Resources that a backend has used up to one moment. */
export interface BackendSample {
  /** User and system time since the process started, all threads. */
  readonly cpuSeconds: number
  readonly rssBytes: number
  /** Largest so far. */
  readonly peakRssBytes: number
  /** How late timers fired since the last sample. */
  readonly eventLoopLagMs: LatencySummary
}

/** Bench to backend process. */
export type BackendCommand =
  | { readonly type: 'start'; readonly options: BackendOptions }
  | { readonly type: 'sample'; readonly id: number }

/** Backend process to bench. */
export type BackendEvent =
  | { readonly type: 'listening'; readonly url: string; readonly port: number }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'sample'; readonly id: number; readonly sample: BackendSample }
  /** The last one, after SIGTERM: nobody is connected any more. */
  | { readonly type: 'drained'; readonly sample: BackendSample }
