// What the blocks of code in the docs take for granted: names of the app they belong to. A block's own names go first.

import type * as vitest from 'vitest'
import type * as webmq from 'webmq-client'
import type * as webmqServer from 'webmq-server'

declare global {
  const setup: typeof webmq.setup
  const listen: typeof webmq.listen
  const publish: typeof webmq.publish
  const unlisten: typeof webmq.unlisten
  const WebMQClient: typeof webmq.WebMQClient
  const WebMQError: typeof webmq.WebMQError
  const client: webmq.WebMQClient

  const createServer: typeof webmqServer.createServer
  const server: ReturnType<typeof webmqServer.createServer>

  const room: string
  const user: { readonly id: string }
  const text: string
  const id: string
  const key: string
  const token: string
  const signal: AbortSignal
  const payload: unknown

  /** Of the app. */
  const orders: {
    add(order: unknown): void
    replaceAll(orders: unknown): void
    list(): unknown[]
  }
  const watchOrders: (client: webmq.AnyClient) => typeof orders
  const fetchMessages: () => Promise<void>
  const render: (...values: unknown[]) => void
  const show: (...values: unknown[]) => void
  const hide: (...values: unknown[]) => void
  const update: (...values: unknown[]) => void
  const apply: (...values: unknown[]) => Promise<void>
  const draw: (...values: unknown[]) => void
  const store: (...values: unknown[]) => void
  const badge: (...values: unknown[]) => void
  const showUnsent: (...values: unknown[]) => void
  const save: (...values: unknown[]) => Promise<void>
  const resize: (...values: unknown[]) => Promise<void>
  const form: HTMLFormElement
  const readForm: () => unknown
  const setPrices: (change: (prices: unknown) => unknown) => void
  const merge: (...values: unknown[]) => unknown
  const archive: (...values: unknown[]) => void
  const reconcile: (pattern: string) => void
  const refetch: (reason?: unknown) => Promise<void>
  const retryLater: (id: string) => void
  const handler: (payload: unknown) => void
  const expect: typeof vitest.expect
  const vi: typeof vitest.vi
  const queryClient: { invalidateQueries(): Promise<void> }
}
