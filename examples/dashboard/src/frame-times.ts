const KEPT_FRAMES = 1_200

/** Times between animation frames; a test reads them from the page. */
export class FrameTimes {
  readonly times: number[] = []
  #lastMs = performance.now()

  constructor() {
    const next = (nowMs: number) => {
      this.times.push(nowMs - this.#lastMs)
      if (this.times.length > KEPT_FRAMES) this.times.shift()
      this.#lastMs = nowMs
      requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
    Object.assign(globalThis, { frameTimes: this.times })
  }

  get perSecond(): number {
    const last = this.times.slice(-60)
    const totalMs = last.reduce((sum, ms) => sum + ms, 0)
    return totalMs === 0 ? 0 : Math.round((1_000 * last.length) / totalMs)
  }
}
