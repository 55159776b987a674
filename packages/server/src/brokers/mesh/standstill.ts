/** The process notes this often, within the time that it must not stand still, that it runs. */
const NOTES_PER_LIMIT = 8

/**
 * Tells that this process has stood still for so long that its peers may have given it up: what it reads next may come
 * after messages that it was never sent.
 */
export class Standstill {
  readonly #limitMs: number
  readonly #onStandstill: () => void
  #timer: NodeJS.Timeout | undefined
  #noteMs = 0

  /** @param limitMs No peer gives this node up within less. */
  constructor(limitMs: number, onStandstill: () => void) {
    this.#limitMs = limitMs
    this.#onStandstill = onStandstill
  }

  start(): void {
    this.#noteMs = performance.now()
    this.#timer = setInterval(() => this.look(), this.#limitMs / NOTES_PER_LIMIT)
  }

  /** Before anything that has arrived is delivered. */
  look(): void {
    const nowMs = performance.now()
    const hasStoodStill = this.#timer !== undefined && nowMs - this.#noteMs > this.#limitMs
    this.#noteMs = nowMs
    if (hasStoodStill) this.#onStandstill()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
