import type { StateChange, WebMQClient } from '../src/index.js'
import { createTestClient, type TestClientOptions, type TestServer } from '../src/testing/index.js'

/** A client of the test server that records its state changes. Its first wait is always 250 ms. */
export function watchedClient(options: TestClientOptions = {}): {
  readonly client: WebMQClient
  readonly server: TestServer
  readonly changes: readonly StateChange[]
  readonly states: () => string[]
} {
  const { client, server } = createTestClient({ random: () => 0.5, ...options })
  const changes: StateChange[] = []
  client.on('state', (change) => changes.push(change))
  return { client, server, changes, states: () => changes.map(({ state }) => state) }
}
