// The server of a measurement: prints its port, waits for a line, works, and prints what it has used.
import process from 'node:process'
import { createServer } from '../../server/dist/index.js'

const { options, publishing } = JSON.parse(process.argv[2] ?? '{}')
const SETTLE_MS = 1_500
const TICK_MS = 5

const server = createServer({ port: 0, logLevel: 'error', maxConnectionsPerAddress: 100_000, ...options })
const { port } = await server.start()
process.stdout.write(`${port}\n`)

process.stdin.once('data', async () => {
  const before = server.stats()
  const cpuBefore = process.cpuUsage()
  await publish(publishing)
  const { user, system } = process.cpuUsage(cpuBefore)
  const after = server.stats()
  const result = {
    cpuSeconds: (user + system) / 1e6,
    deliveredCount: after.transport.deliveredCount - before.transport.deliveredCount,
    receivedCount: after.receivedCount - before.receivedCount,
    conflatedCount: after.transport.conflatedCount,
    slowConsumerCount: after.transport.slowConsumerCount,
  }
  process.stdout.write(`${JSON.stringify(result)}\n`)
  process.exit(0)
})

/** Publishes at an even pace, round the keys, a last value to each, then waits for what is on its way. */
async function publish({ perSecond, seconds, payloadBytes, keys = 1, settleMs = SETTLE_MS }) {
  const text = 'x'.repeat(payloadBytes)
  const startedMs = performance.now()
  let count = 0
  const next = (last) => server.publish(`measure.${count % keys}`, { n: count, at: Date.now(), last, text })
  while (performance.now() - startedMs < seconds * 1_000) {
    const due = Math.floor(((performance.now() - startedMs) / 1_000) * perSecond)
    while (count < due) {
      await next(0)
      count++
    }
    await sleep(TICK_MS)
  }
  for (let key = 0; perSecond > 0 && key < keys; key++) {
    await next(1)
    count++
  }
  await sleep(settleMs)
}

function sleep(timeMs) {
  return new Promise((resolve) => {
    setTimeout(resolve, timeMs)
  })
}
