import type { Service } from './service.js'

/** Several services that act as one. */
export class ServiceSet implements AsyncDisposable {
  readonly #services: readonly Service[]

  constructor(services: readonly Service[]) {
    this.#services = services
  }

  /** User and system time of all their processes so far; `undefined` when one is unknown. */
  cpuSeconds(): number | undefined {
    let sum = 0
    for (const service of this.#services) {
      const seconds = service.cpuSeconds()
      if (seconds === undefined) return undefined
      sum += seconds
    }
    return sum
  }

  /** Largest resident memory of each process so far, summed; `undefined` when one is unknown. */
  peakRssBytes(): number | undefined {
    const bytes = this.#services.map((service) => service.peakRssBytes()).filter((one) => one !== undefined)
    return bytes.length < this.#services.length ? undefined : bytes.reduce((sum, one) => sum + one, 0)
  }

  /** Ends all and removes their data. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}
