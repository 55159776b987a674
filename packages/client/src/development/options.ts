import type { ClientOptions } from '../client-options.js'
import { invalid, NUMBERS, webSocketUrl } from '../options.js'

/** Checks the names and ranges of a client's options. */
export function checkOptions(options: ClientOptions): void {
  if ('transports' in options) throw invalid('transports: pass WebSocket: eventStreams() of webmq-client/sse')
  const given: Partial<typeof NUMBERS> = { ...options, ...options.reconnect, ...options.offlineQueue }
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    if (!((given[name] ?? 0) >= 0)) throw invalid(name)
  }
  // A server that renders the page has no location: a relative URL waits for the first connection.
  if (typeof options.url !== 'function') webSocketUrl(options.url, globalThis.location?.href ?? 'http://localhost')
}
