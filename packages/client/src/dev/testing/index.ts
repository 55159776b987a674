export { createTestClient, type TestClientOptions } from './test-client.js'
export type { TestPresence, TestWatcher } from './test-presence.js'
export { createTestServer, type DropOptions, TestServer, type TestServerOptions } from './test-server.js'
