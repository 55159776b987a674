import type { Timer } from '../connection/timer.js'
import type { Start } from './requests.js'
import type { LiveSubscription } from './subscription.js'

/** All subscriptions of one pattern. On the wire they are one listen. */
export interface Listen {
  readonly pattern: string
  /** Replaced, never changed: handlers listen and unlisten while a message is being delivered. Empty: the listen has ended. */
  all: readonly LiveSubscription[]
  /** Subscriptions that wait for the answer to a listen without a replay; others may join them. */
  pending?: LiveSubscription[] | undefined
  attempt: number
  /** Of the next attempt. */
  readonly timer: Timer
}

/** Whether its subscriptions differ in what they may miss. On the wire they are one listen: none misses more than it allows. */
export function isMixed({ all }: Listen): boolean {
  return all.some(({ options }) => options.overflow !== all[0]?.options.overflow)
}

/** Whether some subscription wants meta. */
export function hasMeta({ all }: Listen, except?: LiveSubscription): boolean {
  return all.some((one) => one !== except && one.options.meta)
}

export function isActive({ state }: LiveSubscription): boolean {
  return state === 'active'
}

/** Whether a listen asks for live messages only. */
export function isLive({ since, last, rewindMs, state }: Start): boolean {
  return (since ?? last ?? rewindMs ?? state) === undefined
}
