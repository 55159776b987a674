import { createTestClient, type TestClientOptions, type TestServer } from '../src/dev/testing/index.js'
import type { ClientStatus, State, WebMQClient } from '../src/index.js'

/** A client of the test server that records its state changes. Its first wait is always 250 ms. */
export function watchedClient(options: TestClientOptions = {}): {
  readonly client: WebMQClient
  readonly server: TestServer
  /** Every change of the state, and every attempt. */
  readonly changes: readonly StateChange[]
  readonly states: () => string[]
} {
  const { client, server } = createTestClient({ random: () => 0.5, ...options })
  const changes: StateChange[] = []
  client.on('status', (status, previous) => {
    if (status.state !== previous.state || status.attempt !== previous.attempt) {
      changes.push(changeOf(status, previous.state))
    }
  })
  return { client, server, changes, states: () => changes.map(({ state }) => state) }
}

export interface StateChange extends Pick<ClientStatus, 'state' | 'code' | 'attempt' | 'retryInMs'> {
  readonly previous: State
  readonly error?: ClientStatus['lastError']
}

export function changeOf({ state, code, attempt, retryInMs, lastError }: ClientStatus, previous: State): StateChange {
  return { state, previous, code, attempt, retryInMs, error: lastError }
}
