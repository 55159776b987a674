// WebMQ itself, with any transport. Publishes in the process of the server.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DeliveredCount } from '../dist/targets/delivered-count.js'
import { installedVersion } from '../dist/targets/installed-version.js'
import { serveTarget, targetSettings } from '../dist/targets/serve-target.js'
import { maxWaitingBytesOf } from '../dist/targets/target-server.js'

const {
  transport,
  jwtSecret,
  isLossless: _,
  recovery: __,
  isUnwatched: ___,
  toldPayloadBytes,
  root,
  ...options
} = targetSettings()
const { createServer } = await import(
  root === undefined ? 'webmq-server' : pathToFileURL(join(root, 'packages/server/dist/index.js')).href
)
const isNative = transport === 'native'
const failed = (error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}
const ignore = () => undefined
const tell = (fields, text = fields) => {
  process.stderr.write(`${text}${fields.err === undefined ? '' : `: ${fields.err.message}`}\n`)
}
/** A server waits for its broker without end, and a mesh for nodes that start; the bench ends with the first reason. */
const warn = ({ address, reason }, text) => {
  if (text !== 'the broker is not reached yet' || options.broker.startsWith('mesh:')) return
  failed(new Error(`${text}: ${address}: ${reason}`))
}
const logger = { trace: ignore, debug: ignore, info: ignore, warn, error: tell, fatal: tell, child: () => logger }
const server = createServer({
  host: '127.0.0.1',
  port: 0,
  transport,
  logger,
  ...options,
  // All connections of a run are those of one user.
  ...(jwtSecret === undefined ? {} : { jwt: { secret: jwtSecret }, maxConnectionsPerUser: 10_000_000 }),
})
const { port } = await server.start().catch(failed)

/** How often a node reports its deliveries: a window is at least 10 ms long. */
const TELL_INTERVAL_MS = 2

/** By key, as promises. */
const streams = new Map()

/** Since nothing waited. */
let publishedBytes = 0
let publishedCount = 0
let deliveredBefore = 0
/** One per writer. Publishing copies the bytes, so the same batch is filled again. */
let batch = []

serveTarget({
  port,
  version: installedVersion('webmq-server'),
  publish(writer, seq, timeUs, key = 'bench.tick') {
    const payload = writer.write(seq, timeUs)
    // Messages to rooms are few, and reach some connections only.
    if (key === 'bench.tick') {
      publishedBytes += payload.length
      publishedCount++
    }
    return server.publish(key, payload).catch(failed)
  },
  async append(writer, seq, timeUs, key) {
    const bytes = Buffer.from(writer.write(seq, timeUs))
    let stream = streams.get(key)
    if (stream === undefined) {
      stream = server.stream(key)
      streams.set(key, stream)
    }
    await (await stream).append(bytes).catch(failed)
  },
  async publishBatch(writers, firstSeq, timeUs) {
    if (batch[0]?.payload !== writers[0].bytes)
      batch = writers.map(({ bytes }) => ({ key: 'bench.tick', payload: bytes }))
    for (let place = 0; place < writers.length; place++) writers[place].write(firstSeq + place, timeUs)
    publishedBytes += writers.length * writers[0].bytes.length
    publishedCount += writers.length
    await server.publishBatch(batch).catch(failed)
  },
  publishTo(key, payload) {
    server.publish(key, payload).catch(failed)
  },
  waitingBytes() {
    const { connections, deliveredCount, outboxBytes } = server.stats().transport
    // Published messages that are in no outbox yet are on their way to the I/O threads.
    const submittedCount = publishedCount - (deliveredCount - deliveredBefore) / Math.max(1, connections)
    // The outboxes of `native` share their bytes; those of the others count for each connection.
    const outbox = isNative ? outboxBytes : outboxBytes / Math.max(1, connections)
    if (submittedCount > 0) return outbox + (submittedCount * publishedBytes) / publishedCount
    publishedBytes = 0
    publishedCount = 0
    deliveredBefore = deliveredCount
    return outbox
  },
  // The native transport makes publishers wait by itself.
  ...(isNative ? {} : { maxWaitingBytes }),
  connectionCount: () => server.stats().connectionCount,
  receivedCount: () => server.stats().receivedCount,
  refusedCount: () => Object.values(server.stats().publishRateCounts).reduce((sum, count) => sum + count, 0),
})

if (toldPayloadBytes !== undefined) {
  const delivered = new DeliveredCount()
  let told = 0
  setInterval(() => {
    const count = deliveredMessageCount()
    if (count === told) return
    told = count
    delivered.tell(count)
  }, TELL_INTERVAL_MS)
}

/**
 * Messages of other nodes that no connection here waits for any more; a lower bound, because headers count as payload.
 */
function deliveredMessageCount() {
  const { routedCount, transport } = server.stats()
  const outbox = isNative ? transport.outboxBytes : transport.outboxBytes / Math.max(1, transport.connections)
  return Math.max(0, routedCount - Math.ceil(outbox / toldPayloadBytes))
}

/** Half of the server's limit for a connection. */
function maxWaitingBytes() {
  return Math.min(options.maxOutboxBytes ?? 1024 * 1024, maxWaitingBytesOf(server.stats().connectionCount)) / 2
}
