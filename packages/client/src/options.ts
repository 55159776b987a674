import { WebMQError } from './protocol/index.js'
import type { ClientOptions, WebSocketConstructor } from './types.js'

/** Options with every default filled in. */
export type ResolvedOptions = ReturnType<typeof resolveOptions>

/** `setTimeout` fires at once when it is given more. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Fills in the defaults.
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function resolveOptions(options: ClientOptions) {
  const { url, token, codec, reconnect = {}, offlineQueue = {}, whenOffline = 'queue', random = Math.random } = options
  const socketClass: WebSocketConstructor | undefined = options.WebSocket ?? globalThis.WebSocket
  if (!url) throw new WebMQError('E_OPTION_INVALID', { detail: 'url is missing' })
  if (!socketClass) {
    throw new WebMQError('E_OPTION_INVALID', { detail: "no WebSocket here; pass one, e.g. `WebSocket` of 'ws'" })
  }
  const resolved = {
    url,
    token,
    codec,
    whenOffline,
    random,
    socketClass,
    minMs: reconnect.minMs ?? 500,
    maxMs: reconnect.maxMs ?? 20_000,
    maxAttempts: reconnect.maxAttempts ?? Number.POSITIVE_INFINITY,
    maxMessages: offlineQueue.maxMessages ?? 1_000,
    maxBytes: offlineQueue.maxBytes ?? 1_048_576,
    maxAgeMs: offlineQueue.maxAgeMs ?? 60_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    ackTimeoutMs: options.ackTimeoutMs ?? 10_000,
    heartbeatTimeoutMs: options.heartbeatTimeoutMs ?? 10_000,
    lostAfterMs: options.lostAfterMs ?? 5_000,
  }
  for (const [name, value] of Object.entries(resolved)) {
    if (typeof value === 'number' && !(value >= 0)) throw new WebMQError('E_OPTION_INVALID', { detail: name })
  }
  // A URL that cannot be parsed is a mistake to be seen at once, not an attempt to be repeated for ever.
  if (typeof url !== 'function') webSocketUrl(url)
  return resolved
}

/**
 * Makes a `ws:` or `wss:` URL of what an app has at hand.
 * @throws {WebMQError} `E_OPTION_INVALID` when it is not a URL, or of another scheme.
 */
export function webSocketUrl(url: string | URL): string {
  let cause: unknown
  try {
    const resolved = new URL(url, globalThis.location?.href)
    resolved.protocol = resolved.protocol.replace(/^http/, 'ws')
    resolved.hash = ''
    if (/^wss?:$/.test(resolved.protocol)) return resolved.href
  } catch (error) {
    cause = error
  }
  throw new WebMQError('E_OPTION_INVALID', { detail: `url ${url}`, cause })
}
