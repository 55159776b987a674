import type { Session } from '../session/session.js'

export interface DrainContext {
  readonly sessions: Iterable<Session> & { readonly size: number }
  readonly logger: { info(fields: object, message: string): void }
  /** A random number in [0, 1); default `Math.random`. */
  readonly random?: () => number
}

const STEP_MS = 20
/**
 * Time for the broker to answer the publishes of a connection whose turn has come. The client publishes the others again,
 * with the same ids, to another node.
 */
const ANSWER_MS = 600
/** The closes are spread already, so a client need not stay away for long: only so that a step is no burst. */
const MAX_RETRY_AFTER_MS = 1_000

/**
 * Time over which the connections are closed: at a pace that the other nodes can take, at most `drainMs`.
 * A few connections are closed at once.
 */
export function drainSpreadMs(connectionCount: number, drainMs: number, perSecond: number): number {
  return Math.min(drainMs, (connectionCount * 1_000) / perSecond)
}

/**
 * Closes every connection with 4001, evenly spread over time, the idle ones first and the busiest last. Each is told a
 * random time to wait before reconnecting. A connection is closed once its publishes are answered. Resolves when all
 * connections have closed, or after the limit. Cost: O(n log n) once.
 */
export async function drain(context: DrainContext, spreadMs: number, limitMs: number): Promise<void> {
  const { sessions, logger, random = Math.random } = context
  const all = idleFirst(context)
  logger.info({ connections: all.length, spreadMs }, 'draining')
  const startedMs = performance.now()
  const maxRetryAfterMs = Math.min(spreadMs, MAX_RETRY_AFTER_MS)
  let next = 0
  let closing: { readonly session: Session; readonly latestMs: number }[] = []
  while (sessions.size > 0) {
    const elapsedMs = performance.now() - startedMs
    if (elapsedMs >= limitMs) return
    const dueCount = elapsedMs < spreadMs ? Math.floor((all.length * elapsedMs) / spreadMs) + 1 : all.length
    for (const session of all.slice(next, dueCount)) closing.push({ session, latestMs: elapsedMs + ANSWER_MS })
    next = Math.max(next, dueCount)
    closing = closing.filter(({ session, latestMs }) => {
      const waits = session.pendingBytes > 0 && elapsedMs < latestMs
      if (!waits) session.end('E_DRAIN', Math.round(random() * maxRetryAfterMs))
      return waits
    })
    await wait(STEP_MS)
  }
}

/** Sessions of the same load stay in the order in which they connected. */
function idleFirst({ sessions }: DrainContext): readonly Session[] {
  return Array.from(sessions, (session) => ({ session, load: session.load }))
    .sort((one, other) => one.load - other.load)
    .map(({ session }) => session)
}

export function wait(timeMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, timeMs)
  })
}
