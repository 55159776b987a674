/** What the code of a pane may import. */
export * as client from 'webmq-client'
export * as parts from 'webmq-client/parts'
export * as stream from 'webmq-client/stream'
export { createTestServer } from 'webmq-client/testing'
