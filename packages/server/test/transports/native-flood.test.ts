import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { expect, it, onTestFinished } from 'vitest'
import { eventually, WebSocketClient } from 'webmq-conformance'
import { createServer } from '../../src/create-server.js'

const MESSAGES = 3_000
const PAYLOAD_BYTES = 20_000
const FLOOD_MESSAGES = 300_000
const FLOOD_MESSAGE_BYTES = 200
/** Frames that were made before are sent faster than any server handles them; a thread does it that nobody else needs. */
const FLOODER = `
  const { workerData } = require('node:worker_threads')
  const { connect } = require('node:net')
  const { hostname, port, pathname } = new URL(workerData.url)
  const masked = Buffer.from([0x81, 0x80 | 126, 0, workerData.bytes, 0, 0, 0, 0])
  const frame = Buffer.concat([masked, Buffer.from('publish - flood\\n'.padEnd(workerData.bytes, '1'))])
  const frames = Buffer.concat(new Array(1_000).fill(frame))
  const socket = connect(Number(port), hostname)
  socket.write(
    'GET ' + pathname + ' HTTP/1.1\\r\\nHost: ' + hostname + '\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n')
  let left = workerData.messages / 1_000
  const flood = () => {
    while (left-- > 0 && socket.write(frames));
    if (left > 0) socket.once('drain', flood)
  }
  socket.once('data', () => {
    socket.resume()
    flood()
  })
`
const REQUESTS = 20
/** Payload bytes that are handled before timers and sockets have their turn: 256 KiB, and as many by an inline shard. */
const MAX_TURN_BYTES = 2 * 256 * 1024

it('loses no reader to a publisher that floods and awaits', async () => {
  const server = createServer({ port: 0, logLevel: 'silent', maxOutboxBytes: 512 * 1024 })
  const { url } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const client = await WebSocketClient.open(url)
  onTestFinished(() => client.destroy())
  client.send('listen 1 flood')
  await eventually(() => expect(client.messages.some((message) => message.toString().startsWith('ok 1'))).toBe(true))
  const payload = new Uint8Array(PAYLOAD_BYTES).fill(0x20)
  for (let count = 0; count < MESSAGES; count++) await server.publish('flood', payload)
  // All of it is more than a hundred outboxes.
  await eventually(() => expect(server.stats().transport.outboxBytes).toBe(0))
  expect(server.stats()).toMatchObject({ connectionCount: 1, transport: { slowConsumerCount: 0 } })
})

it('leaves the event loop its turn while a client floods it', async () => {
  const server = createServer({ port: 0, logLevel: 'silent' })
  const { url } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  // A thread of its own: it goes on sending while the event loop of the server is busy.
  const worker = new Worker(FLOODER, {
    eval: true,
    workerData: { url, messages: FLOOD_MESSAGES, bytes: FLOOD_MESSAGE_BYTES },
  })
  onTestFinished(async () => void (await worker.terminate()))
  let handledBytes = 0
  let mostBytes = 0
  while (server.stats().receivedCount < FLOOD_MESSAGES) {
    await setImmediate()
    const bytes = server.stats().receivedCount * FLOOD_MESSAGE_BYTES
    mostBytes = Math.max(mostBytes, bytes - handledBytes)
    handledBytes = bytes
  }
  expect(mostBytes).toBeGreaterThan(0)
  expect(mostBytes).toBeLessThanOrEqual(MAX_TURN_BYTES)
})

// Symptom: a ping waited for 2 MiB of each client that flooded. Cause: what a connection had sent was handled as one batch.
it('answers a request while two others flood, before it has handled much of what they send', async () => {
  const server = createServer({ port: 0, logLevel: 'silent', workPerSecond: 1_000_000_000, workBurst: 1_000_000_000 })
  const { url } = await server.start()
  onTestFinished(() => server.stop({ drainMs: 0 }))
  const client = await WebSocketClient.open(url)
  onTestFinished(() => client.destroy())
  for (let count = 0; count < 2; count++) {
    const workerData = { url, messages: 10 * FLOOD_MESSAGES, bytes: FLOOD_MESSAGE_BYTES }
    const worker = new Worker(FLOODER, { eval: true, workerData })
    onTestFinished(async () => void (await worker.terminate()))
  }
  const answerCount = () => client.texts.filter((text) => text.startsWith('ok ')).length
  await eventually(() => expect(server.stats().receivedCount).toBeGreaterThan(10_000))
  const handledBytes: number[] = []
  for (let request = 1; request <= REQUESTS; request++) {
    const before = server.stats().receivedCount
    // Not a ping: the transport may answer that by itself.
    client.send(`listen ${request} probe`)
    while (answerCount() < request) await setImmediate()
    handledBytes.push((server.stats().receivedCount - before) * FLOOD_MESSAGE_BYTES)
  }
  expect(server.stats().receivedCount, 'they still flood').toBeLessThan(20 * FLOOD_MESSAGES)
  // The median: a thread that gets no processor time delays some answers.
  const median = handledBytes.sort((one, other) => one - other)[REQUESTS / 2]
  expect(median).toBeLessThanOrEqual(2 * MAX_TURN_BYTES)
})
