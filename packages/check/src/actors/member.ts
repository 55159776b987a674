import type { MemberRecord, Received } from '../judging/record.js'
import { type ActorOptions, Reconnecting } from './actor.js'

export interface MemberOptions extends ActorOptions {
  readonly group: string
  readonly pattern: string
}

const PATIENCE = { pingIntervalMs: 500, pongTimeoutMs: 5_000, answerTimeoutMs: 15_000 }
/** After an error that is retryable. */
const RETRY_DELAY_MS = 150

/** A member of a queue group, over connections that end. */
export class Member {
  readonly record: MemberRecord
  readonly #options: MemberOptions
  readonly #connection: Reconnecting

  constructor(options: MemberOptions) {
    this.#options = options
    const { name, group, pattern, record, nowMs } = options
    this.record = { name, group, pattern, memberships: [], tasks: [] }
    record.members.push(this.record)
    this.#connection = new Reconnecting(options, PATIENCE, {
      opened: () => this.#join(),
      task: (of, { id, key }: Received) => {
        const isOwn = of === `${group} ${pattern}`
        // A task of a group that it has not joined is nobody's message.
        this.record.tasks.push({ atMs: nowMs(), id: isOwn ? id : '', key })
      },
      ended: () => {
        const last = this.record.memberships.at(-1)
        if (last !== undefined) last.untilMs ??= nowMs()
      },
    })
  }

  start(): void {
    this.#connection.start()
  }

  async stop(): Promise<void> {
    this.#connection.stop()
  }

  #join(): void {
    const connection = this.#connection.open
    if (connection === undefined) return
    const { group, pattern, nowMs } = this.#options
    connection.request('listen', `${pattern} group=${group}`, {
      ok: () => this.record.memberships.push({ fromMs: nowMs(), node: connection.record.node }),
      refused: (_, isRetryable) => {
        const again = () => {
          if (this.#connection.open === connection) this.#join()
        }
        if (isRetryable) setTimeout(again, RETRY_DELAY_MS)
      },
    })
  }
}
