// Deliveries per server CPU second: event streams beside WebSockets, in turns.
// Usage: node figures/sse.mjs [--readers 5000] [--runs 3] [--json <file>]
import { parseArgs } from 'node:util'
import { openEventStream, openWebSocket } from './clients.mjs'
import { column, report } from './record.mjs'
import { measure } from './run.mjs'

const { values } = parseArgs({
  options: {
    readers: { type: 'string', default: '5000' },
    runs: { type: 'string', default: '3' },
    json: { type: 'string' },
  },
})
const readers = Number(values.readers)
const PATTERN = 'measure.#'
const webSocket = (port) => openWebSocket(port, { first: `listen 1 ${PATTERN}` })
const eventStream = (port) => openEventStream(port, { pattern: PATTERN })
const KINDS = {
  WebSocket: Array(readers).fill(webSocket),
  'event stream': Array(readers).fill(eventStream),
  both: [...Array(readers).fill(webSocket), ...Array(readers).fill(eventStream)],
}

const repeats = Object.keys(KINDS).map(() => [])
for (let run = 0; run < Number(values.runs); run++) {
  for (const [place, [target, clients]] of Object.entries(KINDS).entries()) {
    const publishing = { perSecond: 50, seconds: 6, payloadBytes: 100 }
    const { deliveredCount, cpuSeconds, slowConsumerCount } = await measure({ options: {}, publishing, clients })
    const deliveriesPerServerCpuSecond = deliveredCount / cpuSeconds
    repeats[place].push({ target, subscribers: clients.length, deliveriesPerServerCpuSecond, slowConsumerCount })
  }
}
report({
  scenario: 'sse',
  columns: [
    column('subscribers', 'Readers', 'count'),
    column('deliveriesPerServerCpuSecond', 'Deliveries/CPU s', 'rate', 'higher'),
    column('slowConsumerCount', 'Slow', 'count', 'lower'),
  ],
  repeats,
  file: values.json,
})
