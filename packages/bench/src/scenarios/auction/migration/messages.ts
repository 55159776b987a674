import type { Histogram } from 'node:perf_hooks'

export interface WatcherData {
  /** Item of each client; client `i` of the thread has number `firstClient + i`. */
  readonly items: readonly number[]
  readonly firstClient: number
  /** Client `c` begins at entry `c % length`. */
  readonly urls: readonly string[]
  readonly hasTls: boolean
}

/** Main thread to watchers. `begin`: latencies count from `firstSeq` on. `ask`: who has this number, and is connected? */
export type WatcherCommand =
  | { readonly type: 'begin'; readonly firstSeq: number }
  | { readonly type: 'ask'; readonly lastSeq: number }
  | { readonly type: 'finish' }

export type WatcherEvent =
  | { readonly type: 'ready'; readonly connects: Histogram; readonly durationUs: number }
  | { readonly type: 'answer'; readonly doneCount: number }
  | { readonly type: 'result'; readonly result: WatcherResult }

export interface WatcherResult {
  /** Of each item: how many clients had each number. */
  readonly seen: ReadonlyMap<number, ReadonlyMap<number, number>>
  /** Of the measured bids. */
  readonly deliveredCount: number
  readonly duplicateCount: number
  readonly reorderedCount: number
  /** Times that the server told a client that it may have missed messages. */
  readonly gapCount: number
  /** Errors that the client library reported on its own. */
  readonly errorCount: number
  /** Connections that were lost and replaced. */
  readonly movedCount: number
  readonly latency: Histogram
  /** From the loss of a connection to the server's answer to the listen on the next one. */
  readonly liveAgain: Histogram
  /** Share of the time since `begin` that the thread was busy, 0 to 1. */
  readonly utilization: number
}
