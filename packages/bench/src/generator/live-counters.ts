/** Fields of one worker in shared memory. */
const FIELDS = [
  'connectedCount',
  'publishedCount',
  'deliveredCount',
  'arrivedCount',
  'lastArrivalUs',
  'isSendingDone',
] as const

type Field = (typeof FIELDS)[number]

/**
 * What a worker thread has done so far, in memory that the main thread can read at any time: progress and the end of
 * the drain are observed without making the worker stop for it.
 *
 * One writer, many readers. Aligned doubles are read and written whole on the platforms Node runs on; the figures of
 * the result come by message when the worker is done, not from here.
 */
export class LiveCounters {
  readonly buffer: SharedArrayBuffer
  readonly #fields: Float64Array

  constructor(buffer = new SharedArrayBuffer(FIELDS.length * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer
    this.#fields = new Float64Array(buffer)
  }

  read(field: Field): number {
    return this.#fields[FIELDS.indexOf(field)] ?? 0
  }

  set(field: Field, value: number): void {
    this.#fields[FIELDS.indexOf(field)] = value
  }

  increment(field: Field): void {
    this.set(field, this.read(field) + 1)
  }
}
