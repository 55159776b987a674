import type { Histogram } from 'node:perf_hooks'
import type { MessagePort } from 'node:worker_threads'
import type { KeyPlanOptions } from '../load/key-plan.js'
import type { DeliveryTally, Window } from './receiver.js'

/** What a load worker is started with. */
export interface LoadWorkerData {
  readonly planOptions: KeyPlanOptions
  readonly messageSizeBytes: number
  /** The clients this worker plays: `firstClient` up to, without, `endClient`. */
  readonly firstClient: number
  readonly endClient: number
  /** Client `c` connects to entry `c % length`. */
  readonly urls: readonly string[]
  readonly counters: SharedArrayBuffer
  readonly wakeUps: WakeUps
}

/** How the pacer thread rouses one load worker. */
export interface WakeUps {
  /** Gets a message when something is due. */
  readonly port: MessagePort
  /** One Int32: 1 while a message is on its way, so that no more than one ever waits. */
  readonly pending: SharedArrayBuffer
}

/** What the pacer thread is started with. */
export interface PacerData {
  readonly planOptions: KeyPlanOptions
  readonly workers: readonly (WakeUps & { readonly firstClient: number; readonly endClient: number })[]
  readonly control: SharedArrayBuffer
}

/** Main thread to load worker. */
export type LoadCommand = { readonly type: 'begin'; readonly window: Window } | { readonly type: 'finish' }

/** Load worker to main thread. */
export type LoadEvent = { readonly type: 'ready' } | { readonly type: 'result'; readonly result: LoadResult }

/** What one backend's clients of one worker have seen. */
export interface BackendLoad extends Readonly<Omit<DeliveryTally, 'latency'>> {
  readonly backend: number
  readonly clientCount: number
  readonly publishedCount: number
  readonly latency: Histogram
}

/** What one load worker has to say at the end. Counts are of the window: the warm-up is left out. */
export interface LoadResult {
  readonly perBackend: readonly BackendLoad[]
  /** Deliveries that the messages published must lead to: for each, the number of clients that listen to its key. */
  readonly expectedCount: number
  /** Messages sent before the window ended; the rest were sent late by a generator that could not keep up. */
  readonly publishedInWindowCount: number
  readonly acknowledgedCount: number
  readonly publishErrorCount: number
  /** The first of them, as a sentence. */
  readonly firstPublishError?: string
  readonly reconnectCount: number
  /** Times that a client was told that it may have missed messages. */
  readonly gapCount: number
  /** Errors that no promise of a client could tell, such as an unreadable message. */
  readonly clientErrorCount: number
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
