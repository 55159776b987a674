import type { HeardEvent, System } from 'webmq-check/systems'
import { nowUs } from '../../measure/clock.js'
import { type Drop, type DropPlan, dropsOf } from './drop-plan.js'
import { Link } from './link.js'

/** A client of the audience: what it heard, and when it was away. Times are milliseconds. */
export class Member {
  readonly number: number
  readonly channel: string
  readonly events: HeardEvent[] = []
  /** Of each absence: from the loss of its connection, or of its network, until it listened again. */
  readonly awayMs: number[] = []
  /** Of each drop: from the moment at which the network was there again until it listened again. */
  readonly backMs: number[] = []
  readonly #link = new Link(() => this.#lost())
  #client: { close(): void } | undefined
  #awaySinceUs: number | undefined
  #mendedUs: number | undefined

  constructor(number: number, channel: string) {
    this.number = number
    this.channel = channel
  }

  get isAway(): boolean {
    return this.#awaySinceUs !== undefined
  }

  /** Resolves when it is live. */
  async listen(system: System, port: number): Promise<void> {
    this.#client = await system.listen(port, [this.channel], (event) => this.#hear(event), this.#link)
    this.#awaySinceUs = undefined // Its first attempt may have failed.
  }

  /** Its network goes and comes by a plan, whose time begins now. */
  play(plan: DropPlan): void {
    for (const drop of dropsOf(this.number, plan)) {
      setTimeout(() => this.#drop(drop), drop.atMs)
      setTimeout(() => this.#mend(), drop.atMs + plan.dropMs)
    }
  }

  close(): void {
    this.#client?.close()
  }

  #drop({ kind }: Drop): void {
    this.#lost()
    this.#mendedUs = undefined
    this.#link.drop(kind)
  }

  #mend(): void {
    this.#mendedUs = nowUs()
    this.#link.mend()
  }

  #lost(): void {
    this.#awaySinceUs ??= nowUs()
  }

  #hear(event: HeardEvent): void {
    this.events.push(event)
    if (event.what === 'message' || this.#awaySinceUs === undefined) return
    const atUs = nowUs()
    this.awayMs.push((atUs - this.#awaySinceUs) / 1_000)
    if (this.#mendedUs !== undefined) this.backMs.push((atUs - this.#mendedUs) / 1_000)
    this.#awaySinceUs = undefined
    this.#mendedUs = undefined
  }
}
