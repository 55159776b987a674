/** A service could not be found, started or reached, or did not do what it was asked for. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'

  /** @param detail What went wrong and, where something can be done, what. */
  constructor(detail: string, cause?: unknown) {
    super(`service for tests failed: ${detail}`, cause === undefined ? undefined : { cause })
  }
}
