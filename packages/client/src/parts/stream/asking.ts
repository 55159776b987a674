import { nowMs } from '../../core/connection/clock.js'
import { clientOf, type GivenClient } from '../../core/of-client.js'
import { WebMQError } from '../../protocol/errors.js'
import { groupsOf } from '../requests/group-client.js'

/** The writer's group of responders. */
export const WRITERS = 'stream'

/** Silence after which a writer is given up: the server's default, and the range of its option. */
const LEASE_MS = 10_000
const MIN_LEASE_MS = 1_000
const MAX_LEASE_MS = 3_600_000
const TIMEOUT_MS = 10_000
/** A request, or its answer, may be lost with a node. */
const ATTEMPT_MS = 2_500
const PAUSE_MS = 250

/** Silence after which the server gives a writer up. */
export function leaseMsOf(client: GivenClient): number {
  const { streamLeaseMs = LEASE_MS } = clientOf(client).status.limits ?? {}
  // Otherwise a reader would ask, and a writer would send, as fast as they can. Of a text, it is `NaN`.
  return Math.min(Math.max(streamLeaseMs, MIN_LEASE_MS), MAX_LEASE_MS) || MIN_LEASE_MS
}

/**
 * Sends a request to the writer of a key. JSON also with a codec: the writer may be a server.
 * @param isOver Given for what may be sent twice: it is sent again while the writer is not found or does not answer, or either
 *   connection is lost, until this returns `true`, or for 10 seconds.
 */
export async function ask(given: GivenClient, key: string, body: unknown, isOver?: () => boolean): Promise<unknown> {
  const endMs = nowMs() + TIMEOUT_MS
  for (;;) {
    // Another `setup` takes the listen of a reader over.
    const client = clientOf(given)
    client.connect().catch(() => undefined)
    const timeoutMs = Math.max(1, Math.min(isOver ? ATTEMPT_MS : TIMEOUT_MS, endMs - nowMs()))
    try {
      return await groupsOf(client).ask(key, body, { timeoutMs }, null)
    } catch (error) {
      if (isOver?.()) return undefined
      const isLost =
        error instanceof WebMQError && /^E_(NO_RESPONDERS|DISCONNECTED|RESPONSE|RATE_LIMIT|TIMEOUT)$/.test(error.code)
      if (!isOver || !isLost || nowMs() + PAUSE_MS >= endMs) throw error
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
}
