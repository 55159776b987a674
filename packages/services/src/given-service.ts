import type { Service, ServiceKind } from './service.js'
import { ServiceError } from './service-error.js'

/** A service given by URL. It can be used but not ended. */
export class GivenService implements Service {
  readonly kind: ServiceKind
  readonly url: string
  readonly source = 'url'

  constructor(kind: ServiceKind, url: string) {
    this.kind = kind
    this.url = url
  }

  cpuSeconds(): undefined {
    return undefined
  }

  peakRssBytes(): undefined {
    return undefined
  }

  async kill(): Promise<void> {
    throw this.#refusal('killed')
  }

  async freeze(): Promise<void> {
    throw this.#refusal('frozen')
  }

  async thaw(): Promise<void> {
    throw this.#refusal('thawed')
  }

  async restart(): Promise<void> {
    throw this.#refusal('restarted')
  }

  async stop(): Promise<void> {
    // Its starter ends it.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #refusal(what: string) {
    return new ServiceError(
      `the ${this.kind} at ${new URL(this.url).host} was given by URL and cannot be ${what}: ask for { isPrivate: true }`,
    )
  }
}
