/** Commands to the threads of the scenario, and their events. Times are of the machine's clock, in microseconds. */

export interface NetworkData {
  readonly brokerPort: number
  /** On the way to the broker, all connections together. */
  readonly bytesPerSecond: number
}

export interface NetworkState {
  /** In each direction. */
  readonly delayMs: number
  /** Nothing passes. */
  readonly isFrozen: boolean
}

export type NetworkCommand = ({ readonly type: 'set' } & NetworkState) | { readonly type: 'report' }

export type NetworkEvent =
  | { readonly type: 'ready'; readonly port: number }
  /** Answers `report`: what has reached the broker so far. */
  | { readonly type: 'carried'; readonly bytes: number }

export interface PublishersData {
  /** Client c connects to the server at c mod their number. */
  readonly urls: readonly string[]
  readonly clients: number
  readonly messageSize: number
  /** Of the checkout whose client is used; absent: this one. */
  readonly root?: string | undefined
}

export type PublishersCommand =
  /** All clients together, at random phases; `Infinity`: each the next message when the last one is answered. */
  { readonly type: 'offer'; readonly perSecond: number } | { readonly type: 'finish' }

export type PublishersEvent =
  | { readonly type: 'connected' }
  /** Answers `finish`: everything so far. Then the clients are closed. */
  | { readonly type: 'log'; readonly log: PublishLog }

export interface PublishLog {
  /** In the order of their creation. */
  readonly messages: readonly PublishRecord[]
  readonly refusals: readonly Refusal[]
  /** Busy share of the thread, 0 to 1. */
  readonly utilization: number
}

export interface PublishRecord {
  /** When it was to be published. */
  readonly createdUs: number
  /** When its promise settled; `null`: not yet. */
  answeredUs: number | null
  /** Code of the error; `null`: none. */
  failure: string | null
}

/** A server told a client to publish a message again later. */
export interface Refusal {
  readonly atUs: number
  /** How often this message has been refused by now. */
  readonly count: number
}
