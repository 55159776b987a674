// CPU time of a received message, from the socket's event to the handler, beside a bare `onmessage` with `JSON.parse`:
// the best of many rounds, in nanoseconds per message. Without a network, whose cost both have.
// Usage: npx tsc -b packages/client && node packages/client/bench/receive.mjs [path of another build's index.js]
import { pathToFileURL } from 'node:url'

const ROUNDS = 30
const MESSAGES = 50_000
const KEYS = 100

const { WebMQClient } = await import(process.argv[2] ? pathToFileURL(process.argv[2]).href : '../dist/index.js')

/** The sockets that clients have opened. */
const sockets = []

class Socket {
  binaryType = ''
  bufferedAmount = 0

  constructor() {
    sockets.push(this)
  }

  send(frame) {
    const [verb, id] = frame.split(' ')
    if (verb === 'listen') queueMicrotask(() => this.tell(`ok ${id} position=e:0`))
  }

  tell(data) {
    this.onmessage({ data })
  }

  close() {
    // Nobody is there.
  }
}

const LIMITS = {
  maxPayloadBytes: 262_144,
  maxKeyBytes: 255,
  maxWords: 32,
  maxHashes: 3,
  maxListensPerConnection: 1_000,
}
const WELCOME = { protocol: 'webmq.v1', auth: 'none', session: 's', node: 'n', version: '0', heartbeatMs: 25_000 }

let handled = 0
const client = new WebMQClient({ url: 'ws://test.invalid/ws', WebSocket: Socket })
const subscription = client.listen('prices.*', ({ price }) => {
  handled += price
})
await new Promise((resolve) => setTimeout(resolve, 10))
sockets[0].tell(`welcome\n${JSON.stringify({ ...WELCOME, limits: LIMITS })}`)
await subscription.ready

let offset = 0
const payload = JSON.stringify({ price: 1, text: 'x'.repeat(170) })
/** Each frame is a text of its own, as from a network. */
const frames = () =>
  Array.from({ length: MESSAGES }, (_, index) =>
    Buffer.from(`message prices.${index % KEYS} k3f:${(++offset).toString(36)}\n${payload}`),
  )

const bare = {
  onmessage: ({ data }) => {
    handled += JSON.parse(data.slice(data.indexOf('\n') + 1)).price
  },
}

function measure(socket, buffers) {
  const before = process.cpuUsage()
  for (const buffer of buffers) socket.onmessage({ data: buffer.toString() })
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1_000) / MESSAGES
}

let [bareNs, clientNs] = [Infinity, Infinity]
for (let round = 0; round < ROUNDS; round++) {
  const buffers = frames()
  bareNs = Math.min(bareNs, measure(bare, buffers))
  clientNs = Math.min(clientNs, measure(sockets[0], buffers))
}
if (handled !== 2 * ROUNDS * MESSAGES) throw new Error(`${handled} messages were handled`)
console.log(`${bareNs.toFixed(0).padStart(6)} ns  bare onmessage with JSON.parse`)
console.log(`${clientNs.toFixed(0).padStart(6)} ns  client, ${(clientNs - bareNs).toFixed(0)} ns more`)
await client.close()
