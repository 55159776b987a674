import type { IncomingMessage } from 'node:http'
import { isLoopback } from '../identity/loopback.js'

/** Who may read `/metrics`, and in `/health` and `/ready` why the broker is away. */
export type MetricsAudience = 'local' | 'all' | 'off'

/** Headers of requests that a proxy has passed on: they come from its address, and are somebody else's. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/**
 * Whether a request was made on this machine, to a name that is this machine's: not by a page that has given its own name the
 * address of this machine, nor, as far as can be seen, for somebody behind a proxy.
 */
export function isLocalRequest({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
  const { remoteAddress = '' } = socket
  if (!isLoopback(remoteAddress.replace(/^::ffff:/i, ''))) return false
  if (FORWARDING_HEADERS.some((name) => headers[name] !== undefined)) return false
  const host = /^(\[[^\]]*\]|[^:]*)(?::\d+)?$/.exec(headers.host ?? '')?.[1]
  return host !== undefined && isLoopback(host)
}
