// uWebSockets.js alone, as the floor of what clients lose: a connection has one channel, a back end publishes by HTTP,
// and Redis carries messages between nodes. It keeps nothing, so what is published while a client is away is lost.
// Usage: node floor.mjs <port> <namespace> [<url of Redis>]
import { loadUws } from '../dist/targets/load-uws.js'

const [port, namespace, redisUrl] = process.argv.slice(2)
const { uws: uWS, version } = loadUws()
const app = uWS.App()
const sockets = new Set()

/** Sends to the connections of this node. */
const deliver = (text) => app.publish(JSON.parse(text).channel, text)

async function publishOver(url) {
  const { Redis } = await import('ioredis')
  const [outbound, inbound] = [new Redis(url), new Redis(url)]
  inbound.on('message', (_, text) => deliver(text))
  await inbound.subscribe(namespace)
  return (text) => outbound.publish(namespace, text)
}

const publish = redisUrl === undefined ? deliver : await publishOver(redisUrl)

app.ws('/*', {
  idleTimeout: 0,
  sendPingsAutomatically: false,
  upgrade(response, request, context) {
    const [key, protocol, extensions] = ['key', 'protocol', 'extensions'].map((name) =>
      request.getHeader(`sec-websocket-${name}`),
    )
    response.upgrade({ channel: request.getQuery('channel') }, key, protocol, extensions, context)
  },
  open(socket) {
    sockets.add(socket)
    socket.subscribe(socket.getUserData().channel)
  },
  close(socket) {
    sockets.delete(socket)
  },
})
app.post('/publish', (response) => {
  const parts = []
  let isAborted = false
  response.onAborted(() => {
    isAborted = true
  })
  response.onData(async (part, isLast) => {
    parts.push(Buffer.from(Buffer.from(part)))
    if (!isLast) return
    await publish(Buffer.concat(parts).toString())
    if (!isAborted) response.cork(() => response.end('{}'))
  })
})
app.get('/health', (response) => response.end(JSON.stringify({ version })))

const listening = await new Promise((resolve) => app.listen('127.0.0.1', Number(port), resolve))

process.once('SIGTERM', () => {
  uWS.us_listen_socket_close(listening)
  for (const socket of [...sockets]) socket.end(1001)
  setImmediate(() => process.exit())
})
