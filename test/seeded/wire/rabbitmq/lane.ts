/** How long things take inside the broker. RabbitMQ promises none of them. */
export interface Timing {
  /** Until a process takes what another one has sent it: a channel, a queue. */
  hopMs(): number
  /** Of each half of a change that its database makes: until it is seen, and from there to its answer. */
  changeMs(): number
  /** Until a queue has written a message that survives it. */
  writeMs(): number
  /** For which a channel collects confirms, to send many with one frame. */
  confirmMs(): number
}

export const AT_ONCE: Timing = { hopMs: () => 0, changeMs: () => 0, writeMs: () => 0, confirmMs: () => 0 }

/** What waits for a process: calls keep their order, and each takes some time. */
export class Lane {
  readonly #delayMs: () => number
  readonly #waiting: { readonly atMs: number; readonly call: () => void }[] = []
  #lastMs = 0
  #isHeld = false
  #timer: NodeJS.Timeout | undefined

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs
  }

  send(call: () => void): void {
    const delayMs = this.#delayMs()
    if (delayMs <= 0 && this.#waiting.length === 0 && !this.#isHeld) {
      call()
      return
    }
    this.#lastMs = Math.max(this.#lastMs, Date.now() + delayMs)
    this.#waiting.push({ atMs: this.#lastMs, call })
    if (this.#waiting.length === 1) this.#wait()
  }

  /** Whether it stands still: what comes waits. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (!isHeld) this.#wait()
  }

  #wait(): void {
    const [next] = this.#waiting
    if (next === undefined || this.#isHeld) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#run(), Math.max(0, next.atMs - Date.now()))
  }

  #run(): void {
    // The first stays in the lane while it runs: what it sends waits behind the others.
    const nowMs = Date.now() + 1
    for (let next = this.#waiting[0]; next !== undefined && next.atMs <= nowMs && !this.#isHeld; ) {
      next.call()
      this.#waiting.shift()
      next = this.#waiting[0]
    }
    this.#wait()
  }
}

/** Calls after some time; at once if that is none. */
export function after(delayMs: number, call: () => void): void {
  if (delayMs <= 0) call()
  else setTimeout(call, delayMs)
}
