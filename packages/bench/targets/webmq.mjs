// WebMQ itself, with either transport. Publishes in the process of the server.
import { createServer } from 'webmq-server'
import { serveTarget, targetSettings } from '../dist/targets/serve-target.js'
import { MAX_WAITING_SHARED_BYTES, maxWaitingBytesOf } from '../dist/targets/target-server.js'

const { transport, jwtSecret, compression, ...options } = targetSettings()
const server = createServer({
  host: '127.0.0.1',
  port: 0,
  transport,
  logLevel: 'error',
  ...options,
  ...(jwtSecret === undefined ? {} : { jwt: { secret: jwtSecret } }),
  ...(compression === true ? { compression: true } : {}),
})
const { port } = await server.start()
const failed = (error) => {
  process.stderr.write(`publish failed: ${error.message}\n`)
  process.exit(1)
}

/** Since nothing waited. */
let publishedBytes = 0
let publishedCount = 0
let deliveredBefore = 0

serveTarget({
  port,
  version: '0.1.0',
  publish(writer, seq, timeUs) {
    const payload = writer.write(seq, timeUs)
    publishedBytes += payload.length
    publishedCount++
    server.publish('bench.tick', payload).catch(failed)
  },
  publishTo(key, payload) {
    server.publish(key, payload).catch(failed)
  },
  waitingBytes() {
    const { connections, deliveredCount, outboxBytes } = server.stats().transport
    // What has been published and is in no outbox yet is on its way to the I/O threads.
    const submittedCount = publishedCount - (deliveredCount - deliveredBefore) / Math.max(1, connections)
    // The outboxes of `native` share their bytes, those of `uws` are one per connection.
    const outbox = transport === 'native' ? outboxBytes : outboxBytes / Math.max(1, connections)
    if (submittedCount > 0) return outbox + (submittedCount * publishedBytes) / publishedCount
    publishedBytes = 0
    publishedCount = 0
    deliveredBefore = deliveredCount
    return outbox
  },
  maxWaitingBytes: () =>
    transport === 'native' ? MAX_WAITING_SHARED_BYTES : maxWaitingBytesOf(server.stats().connectionCount),
  connectionCount: () => server.stats().connectionCount,
  receivedCount: () => server.stats().receivedCount,
})
