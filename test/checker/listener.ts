import type { ActorOptions } from './actor.js'
import type { ListenerRecord } from './record.js'

/** Where a listen begins the first time. Later it continues from its position. */
export type Start = 'now' | { readonly rewindMs: number } | { readonly last: number }

export interface ListenerOptions extends ActorOptions {
  /** All of them are listened to together, on one connection. */
  readonly listens: readonly { readonly pattern: string; readonly start: Start }[]
  /** Interval of its pings. Default 500. */
  readonly pingIntervalMs?: number
  /** A connection from which nothing comes for so long after a ping is lost. Default 5,000. */
  readonly pongTimeoutMs?: number
  /** A `listen` that is not answered for so long ends the connection. Default 15,000. */
  readonly answerTimeoutMs?: number
}

/** Listens with several patterns over connections that end, and continues each from its position. */
export class Listener {
  readonly record: ListenerRecord

  constructor(options: ListenerOptions) {
    this.record = { name: options.name, patterns: options.listens.map(({ pattern }) => pattern), events: [] }
    options.record.listeners.push(this.record)
  }

  /** Connects, and listens. */
  start(): void {
    throw new Error('not written yet')
  }

  /** Whether all its listens are live: answered without `more`, and all replayed messages have come. */
  get isLive(): boolean {
    throw new Error('not written yet')
  }

  /** Ends its connection without a close frame. It connects again, to any node. */
  cut(): void {
    throw new Error('not written yet')
  }

  /** Does not read for some time: a node may close the connection with 4008. */
  stall(_forMs: number): void {
    throw new Error('not written yet')
  }

  /** Leaves for another node. */
  move(): void {
    throw new Error('not written yet')
  }

  /** The next `count` times, it leaves for another node after the first replayed messages, in the middle of the replay. */
  moveDuringReplay(_count?: number): void {
    throw new Error('not written yet')
  }

  /** Listens once more to one of its patterns, from an earlier position, while it stays live. */
  relisten(): void {
    throw new Error('not written yet')
  }

  /** Closes its connection. */
  async stop(): Promise<void> {
    throw new Error('not written yet')
  }
}
