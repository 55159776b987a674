// Deliveries per server CPU second: event streams beside WebSockets, in turns.
// Usage: node scripts/measure/sse.mjs [readers] [runs]
import process from 'node:process'
import { openEventStream, openWebSocket } from './clients.mjs'
import { measure, median } from './run.mjs'

const [readers = 5_000, runs = 3] = process.argv.slice(2).map(Number)
const PATTERN = 'measure.#'
const webSocket = (port) => openWebSocket(port, { first: `listen 1 ${PATTERN}` })
const eventStream = (port) => openEventStream(port, { pattern: PATTERN })
const KINDS = {
  'WebSocket   ': Array(readers).fill(webSocket),
  'event stream': Array(readers).fill(eventStream),
  'both        ': [...Array(readers).fill(webSocket), ...Array(readers).fill(eventStream)],
}

const rates = {}
for (let run = 0; run < runs; run++) {
  for (const [kind, clients] of Object.entries(KINDS)) {
    const publishing = { perSecond: 50, seconds: 6, payloadBytes: 100 }
    const { deliveredCount, cpuSeconds, slowConsumerCount } = await measure({ options: {}, publishing, clients })
    const rate = deliveredCount / cpuSeconds
    rates[kind] = [...(rates[kind] ?? []), rate]
    console.log(`${kind} ${deliveredCount} deliveries, ${slowConsumerCount} slow, ${Math.round(rate)} per CPU second`)
  }
}
for (const kind of Object.keys(KINDS)) console.log(`median ${kind} ${Math.round(median(rates[kind]))}`)
