import { WebMQClient } from '../../core/client.js'
import type { ClientOptions } from '../../core/client-options.js'
import type { Topics } from '../../core/topics/topics.js'
import { createTestServer, type TestServer } from './test-server.js'

/** Options of {@link createTestClient}: those of a client, and a server that several clients may share. */
export interface TestClientOptions extends Omit<ClientOptions, 'url' | 'WebSocket'> {
  /** Default: a new server. */
  readonly server?: TestServer
}

/**
 * Makes a client of a server in memory. It connects on first use, and again after half of its longest delay, so that a test
 * passes the same in every run: `random` is 0.5 by default.
 */
export function createTestClient<T = Topics>(
  options: TestClientOptions = {},
): { readonly client: WebMQClient<T>; readonly server: TestServer } {
  const { server = createTestServer(), ...rest } = options
  return {
    client: new WebMQClient<T>({ random: () => 0.5, ...rest, url: server.url, WebSocket: server.WebSocket }),
    server,
  }
}
