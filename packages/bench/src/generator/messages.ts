import type { Histogram } from 'node:perf_hooks'
import type { KeyPlanOptions } from '../load/key-plan.js'
import type { DeliveryTally, Window } from './receiver.js'

export interface LoadWorkerData {
  readonly planOptions: KeyPlanOptions
  readonly messageSizeBytes: number
  /** The clients this worker plays: `firstClient` up to, without, `endClient`. */
  readonly firstClient: number
  readonly endClient: number
  /** Client `c` connects to entry `c % length`. */
  readonly urls: readonly string[]
  readonly access: ClientAccess
  readonly counters: SharedArrayBuffer
}

/** How clients are admitted. */
export interface ClientAccess {
  readonly token?: string
  /** Options of Node's TLS; absent: its defaults. */
  readonly tls?: { readonly rejectUnauthorized: boolean; readonly ca?: string }
  /** Beginning of every key. */
  readonly keyPrefix: string
}

export type LoadCommand = { readonly type: 'begin'; readonly window: Window } | { readonly type: 'finish' }

export type LoadEvent = { readonly type: 'ready' } | { readonly type: 'result'; readonly result: LoadResult }

export interface BackendLoad extends Readonly<Omit<DeliveryTally, 'latency'>> {
  readonly backend: number
  readonly clientCount: number
  readonly publishedCount: number
  readonly latency: Histogram
}

/** Final report of one load worker. Counts are of the window, without the warm-up. */
export interface LoadResult {
  readonly perBackend: readonly BackendLoad[]
  /** Expected deliveries: for each published message, the number of clients that listen to its key. */
  readonly expectedCount: number
  /** Messages sent before the window ended; the rest were sent late by a generator that could not keep up. */
  readonly publishedInWindowCount: number
  readonly acknowledgedCount: number
  readonly publishErrorCount: number
  /** The first of them, as a sentence. */
  readonly firstPublishError?: string
  readonly reconnectCount: number
  /** Times that the server told a client that it may have missed messages. */
  readonly gapCount: number
  /** Errors outside of any promise, such as an unreadable message. */
  readonly clientErrorCount: number
  /** Connections that ended for good before the run did. */
  readonly closedCount: number
  readonly firstClose?: string
  /** On the machine's monotonic clock, microseconds; 0 when nothing was sent or received. */
  readonly lastSendUs: number
  readonly lastArrivalUs: number
  /** How far behind its intended time each message was sent. */
  readonly sendLag: Histogram
  /** How late this worker's timers fired during the window. */
  readonly eventLoopLag: Histogram
  /** Share of the window this worker's event loop was busy, 0 to 1. */
  readonly utilization: number
}
