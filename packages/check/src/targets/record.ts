/**
 * What a run of any system has seen, so that one judge can count for all of them. It is plain data.
 *
 * Each channel has one publisher. It numbers its messages, and sends the next when the one before has been answered.
 */
export interface Played {
  readonly published: readonly Published[]
  readonly listeners: readonly Heard[]
}

/** With the times at which it was seen, in milliseconds since the run began. */
export interface TimedPlay extends Played {
  readonly published: readonly (Published & { readonly sentAtMs: number })[]
  readonly listeners: readonly TimedHeard[]
  readonly endedAtMs: number
}

export interface TimedHeard extends Heard {
  readonly events: readonly TimedEvent[]
}

export type TimedEvent = HeardEvent & { readonly atMs: number }

export interface Published {
  readonly channel: string
  readonly number: number
  /** `unknown`: the connection ended before an answer, so the system may have it. */
  readonly outcome: 'acked' | 'refused' | 'unknown'
}

/** A listener to all channels, from before the first publish. Its events are in the order in which they came. */
export interface Heard {
  readonly name: string
  readonly events: readonly HeardEvent[]
}

export type HeardEvent =
  | { readonly what: 'message'; readonly channel: string; readonly number: number }
  /** After a reconnect: what the system has said of the messages in between. Without a channel it is of all of them. */
  | { readonly what: 'told'; readonly channel?: string; readonly isRecovered: boolean }
  /** It listens again, and the system has said nothing of the messages in between. */
  | { readonly what: 'back'; readonly channel?: string }
