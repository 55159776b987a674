import type { Published, System } from 'webmq-check/systems'
import { nowUs } from '../../measure/clock.js'
import { roomOf } from './messages.js'

const TICK_MS = 5
/** Messages that wait for the answer to the one before. Beyond, the back end is the one that is slow, and offers no more. */
const MAX_WAITING = 2_000

/** A back end that publishes to all rooms in turn at a steady rate; of a room, the next when the last was answered. */
export class RoomPublisher {
  readonly published: Published[] = []
  readonly #system: System
  readonly #origin: string
  readonly #rooms: number
  readonly #intervalUs: number
  readonly #tails: Promise<void>[] = []
  readonly #numbers: number[] = []
  #timer: NodeJS.Timeout | undefined
  #nextUs = 0
  #turn = 0
  #waitingCount = 0
  heldBackCount = 0

  constructor(system: System, origin: string, rooms: number, perSecond: number) {
    this.#system = system
    this.#origin = origin
    this.#rooms = rooms
    this.#intervalUs = 1_000_000 / perSecond
  }

  start(): void {
    this.#nextUs = nowUs()
    this.#timer = setInterval(() => this.#publishDue(), TICK_MS)
  }

  /** Resolves when all are answered. Idempotent. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#tails)
  }

  #publishDue(): void {
    for (const endUs = nowUs(); this.#nextUs <= endUs; this.#nextUs += this.#intervalUs) {
      const room = this.#turn++ % this.#rooms
      if (this.#waitingCount >= MAX_WAITING) {
        this.heldBackCount++
        continue
      }
      this.#waitingCount++
      this.#tails[room] = (this.#tails[room] ?? Promise.resolve()).then(() => this.#publish(room))
    }
  }

  async #publish(room: number): Promise<void> {
    const number = (this.#numbers[room] ?? 0) + 1
    this.#numbers[room] = number
    const channel = roomOf(room)
    const outcome = await this.#system.publish(this.#origin, { channel, number })
    this.published.push({ channel, number, outcome })
    this.#waitingCount--
  }
}
