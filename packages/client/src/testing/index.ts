export { createTestClient, type TestClientOptions } from './test-client.js'
export { createTestServer, type DropOptions, TestServer, type TestServerOptions } from './test-server.js'
