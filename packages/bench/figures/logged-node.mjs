// A node of logged.mjs: publishes what it is told to, and counts what it hears.
// Usage: node logged-node.mjs ROOT OPTIONS PATTERN TRACE [COLLECTOR]
import process from 'node:process'

const [root, options, pattern, trace, collector] = process.argv.slice(2)
const { createServer } = await import(`${root}/packages/server/dist/index.js`)
const TEXT = 'x'.repeat(98)
const SAMPLED = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

/** As webmq-server does when a collector is named. */
async function sendSpans() {
  const { sendTraces } = await import(`${root}/packages/server/dist/doors/cli/send-traces.js`)
  const logger = { info: () => undefined, warn: (...line) => console.error(...line) }
  await sendTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: collector }, logger)
}

process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collector
if (trace === 'sampled') await sendSpans()
const traced = trace === 'none' ? undefined : { traceparent: SAMPLED }

const server = createServer({ port: 0, logLevel: 'error', ...JSON.parse(options) })
await server.start()
let heardCount = 0
server.listen(pattern, () => {
  heardCount++
})

/** Each publisher waits for its last message. */
async function flood(publishers, keys, seconds) {
  const endMs = performance.now() + seconds * 1_000
  let count = 0
  const publish = async () => {
    while (performance.now() < endMs) await server.publish(`log.${count++ % keys}`, TEXT, traced)
  }
  await Promise.all(Array.from({ length: publishers }, publish))
  return count
}

process.on('message', async ({ publishers, keys, seconds, isOver }) => {
  if (isOver) {
    await server.stop()
    process.exit(0)
  }
  const count = publishers === undefined ? 0 : await flood(publishers, keys, seconds)
  const { user, system } = process.cpuUsage()
  process.send({ count, heardCount, cpuUs: user + system })
})
process.send('ready')
