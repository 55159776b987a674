/** Index of each figure of one worker in shared memory. */
const PLACES = {
  connectedCount: 0,
  publishedCount: 1,
  deliveredCount: 2,
  arrivedCount: 3,
  lastArrivalUs: 4,
  isSendingDone: 5,
} as const

/** A figure that a worker publishes. */
export type LiveCounter = keyof typeof PLACES

/**
 * Progress of a worker thread, in memory that the main thread can read at any time. Observing progress and the end of
 * the drain does not interrupt the worker.
 *
 * One writer, many readers. Aligned doubles are read and written whole on the platforms Node runs on; the figures of
 * the result come by message when the worker is done, not from here.
 */
export class LiveCounters {
  readonly buffer: SharedArrayBuffer
  readonly #fields: Float64Array

  constructor(buffer = new SharedArrayBuffer(Object.keys(PLACES).length * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer
    this.#fields = new Float64Array(buffer)
  }

  read(field: LiveCounter): number {
    return this.#fields[PLACES[field]] ?? 0
  }

  set(field: LiveCounter, value: number): void {
    this.#fields[PLACES[field]] = value
  }

  increment(field: LiveCounter): void {
    this.set(field, this.read(field) + 1)
  }
}
