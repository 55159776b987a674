import { KeyPlan, type KeyPlanOptions } from './key-plan.js'
import { PayloadEncoder } from './payload.js'
import { publicationsOf } from './send-schedule.js'

/** A whole plan, for a program that plays it without planning itself. */
export interface WrittenPlan {
  /** The keys that each client listens to, ascending. */
  readonly listens: readonly (readonly number[])[]
  /** All messages, in the order of sending. Times are whole microseconds after the start of the window. */
  readonly sends: readonly PlannedSend[]
  /** As long as a message; its start fills each message up. */
  readonly padding: string
}

export type PlannedSend = readonly [client: number, turn: number, key: number, keySequence: number, atUs: number]

export function writePlan(options: KeyPlanOptions, messageSizeBytes: number): WrittenPlan {
  const plan = new KeyPlan(options)
  const listens = Array.from({ length: options.clientCount }, (_, client) => plan.listensOf(client))
  const sends = publicationsOf(plan).map(({ client, turn, key, keySequence, atUs }): PlannedSend => {
    return [client, turn, key, keySequence, Math.round(atUs)]
  })
  return { listens, sends, padding: new PayloadEncoder(messageSizeBytes, options.seed).padding }
}
