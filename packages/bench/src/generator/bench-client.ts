import { WebMQClient } from 'webmq-client'
import { WebSocket } from 'ws'

/** One client of the load, reduced to what a scenario needs of it. */
export interface BenchClient {
  connect(): Promise<void>
  /** Resolves when the server has confirmed the listen. */
  listen(key: string, handler: (payload: unknown, key: string) => void): Promise<void>
  /** Resolves when the server has acknowledged the message. */
  publish(key: string, payload: unknown): Promise<void>
  /** How often the connection was lost and made again. */
  readonly reconnectCount: number
  /** Errors that no promise could tell, such as an unreadable message. */
  readonly errorCount: number
  close(): Promise<void>
}

/**
 * Without permessage-deflate on offer: no server of ours takes it up by default, and the offer costs the generator memory.
 */
class PlainWebSocket extends WebSocket {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols, { perMessageDeflate: false })
  }
}

/** The real client library over `ws`, as an application on Node uses it, with its defaults. */
export function createBenchClient(url: string): BenchClient {
  const client = new WebMQClient({ url, WebSocket: PlainWebSocket })
  let reconnectCount = 0
  let errorCount = 0
  client.on('reconnected', () => {
    reconnectCount++
  })
  client.on('error', () => {
    errorCount++
  })
  return {
    connect: () => client.connect(),
    listen: async (key, handler) => {
      await client.listen(key, (payload, message) => handler(payload, message.key)).ready
    },
    publish: async (key, payload) => {
      await client.publish(key, payload)
    },
    get reconnectCount() {
      return reconnectCount
    },
    get errorCount() {
      return errorCount
    },
    close: () => client.close(),
  }
}
