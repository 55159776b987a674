import { within } from '../ports/within.js'
import type { Session } from '../session/session.js'

/** What {@link drain} works with. */
export interface DrainContext {
  readonly sessions: Iterable<Session> & { readonly size: number }
  /** Resolves when all messages in progress have been answered. */
  readonly settled: () => Promise<void>
  /** Time for a client to answer a close frame. */
  readonly closeTimeoutMs: number
  readonly logger: { info(fields: object, message: string): void }
  /** A random number in [0, 1); default `Math.random`. */
  readonly random?: () => number
}

/** Clients that are sent away per second. Each costs another node a handshake and replays. */
const CLOSES_PER_SECOND = 1_000
const STEP_MS = 20

/**
 * Time over which the connections are closed: at a pace that the other nodes can take, at most `drainMs`.
 * A few connections are closed at once.
 */
export function drainSpreadMs(connectionCount: number, drainMs: number): number {
  return Math.min(drainMs, (connectionCount * 1_000) / CLOSES_PER_SECOND)
}

/**
 * Closes every connection with 4001 and a random time to wait before reconnecting, spread over time against a stampede.
 * Resolves when all connections have closed, at the latest after `drainMs` and a close handshake.
 */
export async function drain(context: DrainContext, drainMs: number): Promise<void> {
  const { sessions, settled, closeTimeoutMs, logger, random = Math.random } = context
  const plannedMs = drainSpreadMs(sessions.size, drainMs)
  const beganMs = performance.now()
  logger.info({ connections: sessions.size, spreadMs: plannedMs }, 'draining')
  // Messages on their way to the broker are answered first. A slow broker does not extend the drain beyond `drainMs`.
  const settleLimitMs = Math.max(drainMs - plannedMs, drainMs / 2)
  await within(settled(), settleLimitMs)

  const startedMs = performance.now()
  const elapsedMs = () => performance.now() - startedMs
  const spreadMs = Math.max(0, Math.min(plannedMs, drainMs - (startedMs - beganMs)))
  const total = sessions.size
  let closedCount = 0
  for (const session of [...sessions]) {
    while (spreadMs > 0 && closedCount > (total * elapsedMs()) / spreadMs) await wait(STEP_MS)
    session.end('E_DRAIN', Math.round(random() * spreadMs))
    closedCount++
  }
  const deadlineMs = elapsedMs() + closeTimeoutMs
  while (sessions.size > 0 && elapsedMs() < deadlineMs) await wait(STEP_MS)
}

function wait(timeMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, timeMs)
  })
}
