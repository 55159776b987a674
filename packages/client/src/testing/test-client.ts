import { WebMQClient } from '../client.js'
import type { ClientOptions } from '../client-options.js'
import type { Topics } from '../topics.js'
import { createTestServer, type TestServer } from './test-server.js'

/** Options of {@link createTestClient}: those of a client, and a server to share between several. */
export interface TestClientOptions extends Omit<ClientOptions, 'url' | 'WebSocket'> {
  /** Default: one of its own. */
  readonly server?: TestServer
}

/** A client that is connected, when it is first used, to a server in memory. */
export function createTestClient<T = Topics>(
  options: TestClientOptions = {},
): { readonly client: WebMQClient<T>; readonly server: TestServer } {
  const { server = createTestServer(), ...rest } = options
  return { client: new WebMQClient<T>({ ...rest, url: server.url, WebSocket: server.WebSocket }), server }
}
