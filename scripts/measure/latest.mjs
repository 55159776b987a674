// One reader of 1 Mbit/s among others: 10,000 updates per second to 100 keys, with `latest` for slow readers.
// Usage: node scripts/measure/latest.mjs [other readers] [seconds] [latest|disconnect]. Needs python3.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openWebSocket } from './clients.mjs'
import { measure } from './run.mjs'

const [others = '1000', seconds = '10', overflow = 'latest'] = process.argv.slice(2)
const READER = fileURLToPath(new URL('slow_reader.py', import.meta.url))
let report

async function openSlowReader(port) {
  const reader = spawn('python3', [READER, `${port}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: reader.stdout })[Symbol.asyncIterator]()
  await lines.next()
  report = lines.next().then(({ value }) => JSON.parse(value))
  return { on: () => undefined, destroy: () => once(reader, 'close') }
}

let otherBytes = 0
const result = await measure({
  options: { slow: [`measure.#=${overflow}`] },
  publishing: { perSecond: 10_000, seconds: Number(seconds), payloadBytes: 60, keys: 100, settleMs: 4_000 },
  clients: [
    ...Array(Number(others)).fill((port) => openWebSocket(port, { first: 'listen 1 measure.#' })),
    openSlowReader,
  ],
  work: (sockets) => {
    for (const socket of sockets) socket.on('data', (bytes) => (otherBytes += bytes.length))
    return () => undefined
  },
})
console.log('the slow reader:', JSON.stringify(await report))
console.log('the server:', JSON.stringify({ ...result, bytesReadByOthers: otherBytes }))
