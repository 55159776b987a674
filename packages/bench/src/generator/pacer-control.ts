const PACER_WAITING = 0
/** State of a running pacer. */
export const PACER_STARTED = 1
const PACER_STOPPED = 2

const STATE_BYTES = 8

/** The main thread's control of the pacer, through shared memory because the pacer's event loop never turns. */
export class PacerControl {
  readonly buffer: SharedArrayBuffer
  readonly #state: Int32Array
  readonly #startUs: Float64Array

  constructor(buffer = new SharedArrayBuffer(STATE_BYTES + Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer
    this.#state = new Int32Array(buffer, 0, 1)
    this.#startUs = new Float64Array(buffer, STATE_BYTES, 1)
  }

  get state(): number {
    return Atomics.load(this.#state, 0)
  }

  /** Start of the window on the machine's clock; set once the pacer is started. */
  get startUs(): number {
    return this.#startUs[0] ?? 0
  }

  start(startUs: number): void {
    this.#startUs[0] = startUs
    this.#enter(PACER_STARTED)
  }

  /** Ends the pacer's thread at once, started or not. */
  stop(): void {
    this.#enter(PACER_STOPPED)
  }

  /** Blocks the calling thread until `start` or `stop`. */
  waitForStart(): void {
    Atomics.wait(this.#state, 0, PACER_WAITING)
  }

  /** Blocks the calling thread for that long, or until `stop`. */
  waitForStop(timeoutMs: number): void {
    Atomics.wait(this.#state, 0, PACER_STARTED, timeoutMs)
  }

  #enter(state: number): void {
    Atomics.store(this.#state, 0, state)
    Atomics.notify(this.#state, 0)
  }
}
