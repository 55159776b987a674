// One reader of 1 Mbit/s among others: 10,000 updates per second to 100 keys, with `latest` for slow readers.
// Usage: node figures/latest.mjs [--others 1000] [--seconds 10] [--overflow latest] [--json <file>]. Needs python3.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openWebSocket } from './clients.mjs'
import { column, report } from './record.mjs'
import { measure } from './run.mjs'

const { values } = parseArgs({
  options: {
    others: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '10' },
    overflow: { type: 'string', default: 'latest' },
    json: { type: 'string' },
  },
})
const { others, seconds, overflow } = values
const READER = fileURLToPath(new URL('slow_reader.py', import.meta.url))
let slowReport

async function openSlowReader(port) {
  const reader = spawn('python3', [READER, `${port}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: reader.stdout })[Symbol.asyncIterator]()
  await lines.next()
  slowReport = lines.next().then(({ value }) => JSON.parse(value))
  return { on: () => undefined, destroy: () => once(reader, 'close') }
}

let otherBytes = 0
const result = await measure({
  options: { overflow: [`measure.#=${overflow}`] },
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
const { keys, withLastValue, outOfOrder, lagMs } = await slowReport
report({
  scenario: 'latest',
  columns: [
    column('subscribers', 'Other readers', 'count'),
    column('lagMs.p50', 'Lag p50', 'ms', 'lower'),
    column('lagMs.p99', 'p99', 'ms', 'lower'),
    column('lagMs.max', 'max', 'ms', 'lower'),
    column('keyCount', 'Keys', 'count'),
    column('withLastValue', 'With their last value', 'count', 'higher'),
    column('outOfOrder', 'Out of order', 'count', 'lower'),
    column('conflatedCount', 'Left out', 'count'),
    column('bytesReadByOthers', 'Read by others', 'bytes'),
  ],
  repeats: [
    [
      {
        target: overflow,
        subscribers: Number(others),
        lagMs,
        keyCount: keys,
        withLastValue,
        outOfOrder,
        conflatedCount: result.conflatedCount,
        bytesReadByOthers: otherBytes,
      },
    ],
  ],
  file: values.json,
})
