import type { ClientOptions, OfflineQueueOptions, ReconnectOptions } from '../../core/client-options.js'
import { invalid, MAX_TIMER_MS, NUMBERS, webSocketUrl } from '../../core/options.js'
import { assertOptions, type OptionKinds } from '../../protocol/option-kinds.js'

const KINDS = {
  ...{ url: true, token: true, codec: 'object', resume: 'function', WebSocket: 'function', random: 'function' },
  ...{ reconnect: 'object', offlineQueue: 'object', whenOffline: ['queue', 'reject', 'drop'], lifecycle: 'object' },
  ...{ connectTimeoutMs: 'number', ackTimeoutMs: 'number', heartbeatTimeoutMs: 'number', lostAfterMs: 'number' },
} satisfies OptionKinds<ClientOptions>
const RECONNECT: OptionKinds<ReconnectOptions> = { minMs: 'number', maxMs: 'number', maxAttempts: 'number' }
const QUEUE: OptionKinds<OfflineQueueOptions> = { maxMessages: 'number', maxBytes: 'number', maxAgeMs: 'number' }

/** Checks the names and ranges of a client's options. */
export function checkOptions(options: ClientOptions): void {
  assertOptions('', options, { ...KINDS, transports: true })
  if ('transports' in options) throw invalid('transports: pass WebSocket: eventStreams() of webmq-client/sse')
  const { reconnect = {}, offlineQueue = {} } = options
  assertOptions('reconnect.', reconnect, RECONNECT)
  assertOptions('offlineQueue.', offlineQueue, QUEUE)
  const { token } = options
  if (token != null && typeof token !== 'string' && typeof token !== 'function') {
    throw invalid('token: neither a text nor a function')
  }
  const given: Partial<typeof NUMBERS> = { ...options, ...reconnect, ...offlineQueue }
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    if (!((given[name] ?? 0) >= 0)) throw invalid(name)
  }
  // Timers of parts fire at once for more.
  if ((options.ackTimeoutMs ?? 0) > MAX_TIMER_MS) throw invalid(`ackTimeoutMs: at most ${MAX_TIMER_MS}`)
  // A lower `maxMs` alone lowers both.
  const { minMs = 0, maxMs = NUMBERS.maxMs } = reconnect
  if (minMs > maxMs) throw invalid(`reconnect: minMs ${minMs} is more than maxMs ${maxMs}`)
  // A server that renders the page has no location: a relative URL waits for the first connection.
  if (typeof options.url !== 'function') webSocketUrl(options.url, globalThis.location?.href ?? 'http://localhost')
}
