import type { Session } from '../session/session.js'

/** What a drain works with. */
export interface DrainContext {
  readonly sessions: Iterable<Session> & { readonly size: number }
  /** Resolves when what is being handled has been answered. */
  readonly settled: () => Promise<void>
  /** Time that a peer has to answer a close frame. */
  readonly closeTimeoutMs: number
  readonly log: { info(fields: object, message: string): void }
  /** Chance, from 0 to below 1; default `Math.random`. */
  readonly random?: () => number
}

/** How many clients a second are sent away: they come back somewhere, with a handshake and their replays. */
const CLOSES_PER_SECOND = 1_000
const STEP_MS = 20

/**
 * Over how long so many connections are sent away: at the pace that the other nodes can take, at most `drainMs`.
 * A handful goes at once.
 */
export function drainSpreadMs(connectionCount: number, drainMs: number): number {
  return Math.min(drainMs, (connectionCount * 1_000) / CLOSES_PER_SECOND)
}

/**
 * Sends every client away with 4001 and a time to wait before it comes back, spread over time against a stampede, and
 * resolves when the connections are gone, at the latest `drainMs` and a close handshake later.
 */
export async function drain(context: DrainContext, drainMs: number): Promise<void> {
  const { sessions, settled, closeTimeoutMs, log, random = Math.random } = context
  const plannedMs = drainSpreadMs(sessions.size, drainMs)
  const beganMs = performance.now()
  log.info({ connections: sessions.size, spreadMs: plannedMs }, 'draining')
  // What is on its way to the broker is answered first, unless the broker takes too long: all of it together takes `drainMs`.
  const patienceMs = Math.max(drainMs - plannedMs, drainMs / 2)
  let patience: NodeJS.Timeout | undefined
  await Promise.race([settled(), new Promise((resolve) => (patience = setTimeout(resolve, patienceMs)))])
  clearTimeout(patience)

  const startedMs = performance.now()
  const elapsedMs = () => performance.now() - startedMs
  const spreadMs = Math.max(0, Math.min(plannedMs, drainMs - (startedMs - beganMs)))
  const total = sessions.size
  let sentAway = 0
  for (const session of [...sessions]) {
    while (spreadMs > 0 && sentAway > (total * elapsedMs()) / spreadMs) await wait(STEP_MS)
    session.end('E_DRAIN', Math.round(random() * spreadMs))
    sentAway++
  }
  const deadlineMs = elapsedMs() + closeTimeoutMs
  while (sessions.size > 0 && elapsedMs() < deadlineMs) await wait(STEP_MS)
}

function wait(timeMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, timeMs)
  })
}
