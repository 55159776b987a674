import { WebMQError } from '../protocol/errors.js'
import { checks } from './checks.js'
import type { ClientOptions, WebSocketConstructor } from './client-options.js'

/** Options with every default filled in. */
export type ResolvedOptions = ClientOptions & typeof NUMBERS & Required<Pick<ClientOptions, 'whenOffline' | 'random'>>

/** `setTimeout` fires at once for larger values. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** Options that are numbers of at least 0, with their defaults. */
export const NUMBERS = {
  minMs: 500,
  maxMs: 20_000,
  maxAttempts: Infinity,
  maxMessages: 1_000,
  maxBytes: 1_048_576,
  maxAgeMs: 60_000,
  connectTimeoutMs: 10_000,
  ackTimeoutMs: 10_000,
  heartbeatTimeoutMs: 10_000,
  lostAfterMs: 5_000,
}

/**
 * Fills in the defaults.
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option, with {@link checks}.
 */
export function resolveOptions(options: ClientOptions): ResolvedOptions {
  checks.options?.(options)
  const resolved: Record<string, unknown> = { ...NUMBERS, whenOffline: 'queue', random: Math.random }
  const given = { ...options, ...options.reconnect, ...options.offlineQueue }
  for (const [name, value] of Object.entries(given)) resolved[name] = value ?? resolved[name]
  return resolved as unknown as ResolvedOptions
}

/**
 * Converts an app's URL to a `ws:` or `wss:` URL.
 * @throws {WebMQError} `E_OPTION_INVALID` if it is not a URL, or has another scheme.
 */
export function webSocketUrl(url: string | URL, base = globalThis.location?.href): string {
  let cause: unknown
  try {
    // Only to resolve and to check: React Native's `URL` has no setters, and changes paths.
    const { href } = new URL(url, base)
    const absolute = /^\w+:/.test(`${url}`) ? `${url}` : href
    const result = absolute.replace(/^http/i, 'ws').replace(/#.*/, '')
    if (url && /^wss?:/i.test(result)) return result
  } catch (error) {
    cause = error
  }
  throw invalid(`url ${url}`, cause)
}

/**
 * The WebSocket class to use.
 * @throws {WebMQError} `E_OPTION_INVALID` if there is none.
 */
export function socketClassOf(options: Pick<ClientOptions, 'WebSocket'>): WebSocketConstructor {
  const found = options.WebSocket ?? globalThis.WebSocket
  if (!found) throw invalid('WebSocket')
  return found as WebSocketConstructor
}

/** The error of an option that is not valid. */
export function invalid(detail: string, cause?: unknown): WebMQError {
  return new WebMQError('E_OPTION_INVALID', { detail, cause })
}
