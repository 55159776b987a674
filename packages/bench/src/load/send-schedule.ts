import type { KeyPlan, Publication } from './key-plan.js'

export interface ScheduledSend {
  readonly client: number
  readonly turn: number
  readonly atUs: number
}

/**
 * The send times of some of a plan's clients, in order, warm-up first.
 *
 * All clients have the same period, so the order within one period repeats: two numbers are the whole state, however
 * long the run is.
 */
export class SendSchedule {
  readonly #clients: readonly number[]
  readonly #plan: KeyPlan
  #turn: number
  #place = 0

  constructor(plan: KeyPlan, clients: readonly number[]) {
    this.#plan = plan
    this.#clients = [...clients].sort((a, b) => plan.phaseUs(a) - plan.phaseUs(b) || a - b)
    this.#turn = 0 - Math.ceil(plan.options.warmupUs / plan.periodUs)
    while (this.nextAtUs < -plan.options.warmupUs) this.#advance()
  }

  /** When something is due. @param startUs Of the window. */
  wakeUps(startUs: number): {
    readonly startUs: number
    readonly periodUs: number
    readonly phasesUs: readonly number[]
  } {
    const { periodUs } = this.#plan
    const phasesUs = this.#clients.map((client) => this.#plan.phaseUs(client))
    return { startUs: startUs + this.#turn * periodUs, periodUs, phasesUs }
  }

  /** Microseconds after the start of the window; `Infinity` when nothing is left to send. */
  get nextAtUs(): number {
    const client = this.#clients[this.#place]
    if (client === undefined) return Number.POSITIVE_INFINITY
    const atUs = this.#plan.phaseUs(client) + this.#turn * this.#plan.periodUs
    return atUs < this.#plan.options.durationUs ? atUs : Number.POSITIVE_INFINITY
  }

  /** Takes the next send; `undefined` when nothing is left. */
  shift(): ScheduledSend | undefined {
    const atUs = this.nextAtUs
    const client = this.#clients[this.#place]
    if (client === undefined || atUs === Number.POSITIVE_INFINITY) return undefined
    const send = { client, turn: this.#turn, atUs }
    this.#advance()
    return send
  }

  #advance(): void {
    this.#place++
    if (this.#place < this.#clients.length) return
    this.#place = 0
    this.#turn++
  }
}

/** Every message of a plan, in the order of sending. */
export function publicationsOf(plan: KeyPlan): Publication[] {
  const clients = Array.from({ length: plan.options.clientCount }, (_, client) => client)
  const publishers = clients.map((client) => plan.publisher(client))
  const schedule = new SendSchedule(plan, clients)
  const publications: Publication[] = []
  for (let send = schedule.shift(); send !== undefined; send = schedule.shift()) {
    const publication = publishers[send.client]?.next(send.turn, send.atUs)
    if (publication !== undefined) publications.push(publication)
  }
  return publications
}
