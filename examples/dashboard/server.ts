import { createServer } from 'webmq-server'

const KEY_COUNT = 300
const UPDATES_PER_SECOND = Number(process.env.UPDATES_PER_SECOND ?? 10_000)
const INTERVAL_MS = 10

const server = createServer({
  port: Number(process.env.PORT ?? 8080),
  history: ['prices.#=1', 'feed.#=1'],
  retain: ['prices.#', 'feed.#'],
})
await server.start()

let isRunning = true
server.listen('feed.running', (value) => {
  isRunning = value === true
})

// A timer may be late: as many updates as are due.
const begunMs = performance.now()
let offeredCount = 0
let pausedMs = 0
setInterval(() => {
  if (!isRunning) {
    pausedMs += INTERVAL_MS
    return
  }
  const dueCount = ((performance.now() - begunMs - pausedMs) / 1_000) * UPDATES_PER_SECOND
  const messages = []
  for (; offeredCount < dueCount; offeredCount++) {
    const price = Math.round(10_000 + 1_000 * Math.sin(offeredCount / 5_000) + 100 * Math.random()) / 100
    messages.push({ key: `prices.${Math.floor(Math.random() * KEY_COUNT)}`, payload: price })
  }
  void server.publishBatch(messages)
}, INTERVAL_MS)
