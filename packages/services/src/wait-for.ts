import { ServiceError } from './service-error.js'

const POLL_INTERVAL_MS = 25

/**
 * Polls until something is true.
 * @param what For the message: `the replica to be in step`.
 * @throws {ServiceError} on timeout.
 */
export async function waitFor(what: string, timeoutMs: number, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new ServiceError(`waited ${timeoutMs / 1_000} s in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
  }
}
