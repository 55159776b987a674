import type { ClientOptions, OfflineQueueOptions, ReconnectOptions } from '../../core/client-options.js'
import { invalid, NUMBERS, webSocketUrl } from '../../core/options.js'
import { checkNames, namesOf } from '../names.js'

const NAMES = namesOf<ClientOptions>({
  url: true,
  token: true,
  codec: true,
  reconnect: true,
  whenOffline: true,
  offlineQueue: true,
  resume: true,
  connectTimeoutMs: true,
  ackTimeoutMs: true,
  heartbeatTimeoutMs: true,
  lostAfterMs: true,
  WebSocket: true,
  lifecycle: true,
  random: true,
})
const RECONNECT_NAMES = namesOf<ReconnectOptions>({ minMs: true, maxMs: true, maxAttempts: true })
const QUEUE_NAMES = namesOf<OfflineQueueOptions>({ maxMessages: true, maxBytes: true, maxAgeMs: true })

/** Checks the names and ranges of a client's options. */
export function checkOptions(options: ClientOptions): void {
  checkNames('', options, [...NAMES, 'transports'])
  if ('transports' in options) throw invalid('transports: pass WebSocket: eventStreams() of webmq-client/sse')
  const { reconnect = {}, offlineQueue = {} } = options
  checkNames('reconnect.', reconnect, RECONNECT_NAMES)
  checkNames('offlineQueue.', offlineQueue, QUEUE_NAMES)
  const { token } = options
  if (token != null && typeof token !== 'string' && typeof token !== 'function') {
    throw invalid('token: neither a text nor a function')
  }
  const given: Partial<typeof NUMBERS> = { ...options, ...reconnect, ...offlineQueue }
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    if (!((given[name] ?? 0) >= 0)) throw invalid(name)
  }
  // A lower `maxMs` alone lowers both.
  const { minMs = 0, maxMs = NUMBERS.maxMs } = reconnect
  if (minMs > maxMs) throw invalid(`reconnect: minMs ${minMs} is more than maxMs ${maxMs}`)
  // A server that renders the page has no location: a relative URL waits for the first connection.
  if (typeof options.url !== 'function') webSocketUrl(options.url, globalThis.location?.href ?? 'http://localhost')
}
