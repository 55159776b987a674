import { Lane } from './lane.js'
import type { Queue } from './queue.js'

export interface ConfirmsOptions {
  readonly confirmMs: () => number
  readonly send: (tag: number, isMultiple: boolean, isAck: boolean) => void
}

/** Confirms of a channel: a message is confirmed when all of its queues have it, and refused when one refuses it. */
export class Confirms {
  readonly #options: ConfirmsOptions
  readonly #open = new Map<number, Set<Queue>>()
  readonly #refused = new Set<number>()
  #done: number[] = []
  readonly #collected: Lane
  #count = 0

  constructor(options: ConfirmsOptions) {
    this.#options = options
    this.#collected = new Lane(options.confirmMs)
  }

  /** The next message. @returns its tag. */
  begin(queues: readonly Queue[]): number {
    const tag = ++this.#count
    this.#open.set(tag, new Set(queues))
    if (queues.length === 0) this.#finish(tag)
    return tag
  }

  settled(queue: Queue, tag: number, isTaken: boolean): void {
    const queues = this.#open.get(tag)
    if (queues === undefined) return
    if (!isTaken) this.#refused.add(tag)
    queues.delete(queue)
    if (queues.size === 0) this.#finish(tag)
  }

  #finish(tag: number): void {
    this.#open.delete(tag)
    this.#done.push(tag)
    if (this.#done.length === 1) this.#collected.send(() => this.#flush())
  }

  /** Refusals first. Then one frame for all that no open and no refused message stands before, and one for each other. */
  #flush(): void {
    const done = this.#done.sort((one, other) => one - other)
    this.#done = []
    const refused = done.filter((tag) => this.#refused.delete(tag))
    for (const tag of refused) this.#options.send(tag, false, false)
    const [firstOpen = Number.POSITIVE_INFINITY] = this.#open.keys()
    const cutoff = Math.min(firstOpen, refused[0] ?? Number.POSITIVE_INFINITY)
    const taken = done.filter((tag) => !refused.includes(tag))
    const together = taken.filter((tag) => tag < cutoff)
    const last = together.at(-1)
    if (last !== undefined) this.#options.send(last, true, true)
    for (const tag of taken.slice(together.length)) this.#options.send(tag, false, true)
  }
}
