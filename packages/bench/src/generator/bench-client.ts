import { setTimeout as sleep } from 'node:timers/promises'
import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'
import type { ClientAccess } from './messages.js'

/** A client that is not connected by then fails the run; the library itself retries without end. */
const CONNECT_TIMEOUT_MS = 30_000

/** One client of the load, reduced to what a scenario needs of it. */
export interface BenchClient {
  connect(): Promise<void>
  /** Resolves when the server has confirmed the listen. */
  listen(key: string, handler: (payload: unknown, key: string) => void): Promise<void>
  /** Resolves when the server has acknowledged the message. */
  publish(key: string, payload: unknown): Promise<void>
  /** How often the connection was lost and made again. */
  readonly reconnectCount: number
  /** How often the server said that messages may be missing. */
  readonly gapCount: number
  /** Errors outside of any promise, such as an unreadable message. */
  readonly errorCount: number
  close(): Promise<void>
}

/**
 * Does not offer permessage-deflate: WebMQ declines it by default, and the offer costs the generator memory.
 */
export function plainWebSocket(
  tls: ClientAccess['tls'],
): new (
  url: string | URL,
  protocols?: string | string[],
) => WebSocket {
  return class PlainWebSocket extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols, { ...tls, perMessageDeflate: false })
    }
  }
}

/** The real client library over `ws`, as an application on Node uses it, with its defaults. */
export function createBenchClient(url: string, access: Omit<ClientAccess, 'keyPrefix'>): BenchClient {
  const { token } = access
  const client = new WebMQClient({
    url,
    WebSocket: plainWebSocket(access.tls),
    ...(token === undefined ? {} : { token }),
  })
  let reconnectCount = 0
  let hasConnected = false
  let gapCount = 0
  let errorCount = 0
  let lastFailure = 'no attempt has failed'
  client.on('status', ({ state, lastError }, previous) => {
    lastFailure = lastError?.message ?? lastFailure
    if (state === 'connected' && previous.state === 'reconnecting' && hasConnected) reconnectCount++
    hasConnected ||= state === 'connected'
  })
  client.on('gap', () => {
    gapCount++
  })
  client.on('error', () => {
    errorCount++
  })
  return {
    connect: async () => {
      const ended = new AbortController()
      const timeout = sleep(CONNECT_TIMEOUT_MS, undefined, { signal: ended.signal }).then(() => {
        throw new Error(`not connected within ${CONNECT_TIMEOUT_MS / 1_000} s: ${lastFailure}`)
      })
      timeout.catch(ignore) // Aborted once connected.
      await Promise.race([client.connect(), timeout]).finally(() => ended.abort())
    },
    listen: async (key, handler) => {
      await client.listen(key, (payload, message) => handler(payload, message.key)).ready
    },
    publish: async (key, payload) => {
      await client.publish(key, payload)
    },
    get reconnectCount() {
      return reconnectCount
    },
    get gapCount() {
      return gapCount
    },
    get errorCount() {
      return errorCount
    },
    close: () => client.close(),
  }
}

const ignore = () => undefined
