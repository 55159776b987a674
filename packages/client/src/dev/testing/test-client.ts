import { WebMQClient } from '../../core/client.js'
import type { ClientOptions } from '../../core/client-options.js'
import type { Topics } from '../../core/topics/topics.js'
import { createTestServer, type TestServer } from './test-server.js'

/** Options of {@link createTestClient}: those of a client, and a server that several clients may share. */
export interface TestClientOptions extends Omit<ClientOptions, 'url' | 'WebSocket'> {
  /** Default: a new server. */
  readonly server?: TestServer
}

/** Makes a client of a server in memory. It connects on first use. */
export function createTestClient<T = Topics>(
  options: TestClientOptions = {},
): { readonly client: WebMQClient<T>; readonly server: TestServer } {
  const { server = createTestServer(), ...rest } = options
  return { client: new WebMQClient<T>({ ...rest, url: server.url, WebSocket: server.WebSocket }), server }
}
