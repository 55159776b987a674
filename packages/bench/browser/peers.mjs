// What clients of a comparison connect to: a WebMQ server, and small servers that speak the protocols of the others.
import { createServer as createHttpServer } from 'node:http'
import { Server as SocketIo } from 'socket.io'
import { createServer } from 'webmq-server'
import { WebSocketServer } from 'ws'

const KEYS = 100
const PAYLOAD_BYTES = 200

/** Message number `seq`: one of 100 keys, with a payload of 200 bytes of JSON. */
export function messageOf(seq) {
  const payload = { seq, price: `${seq % 1_000}`, text: '' }
  payload.text = 'x'.repeat(PAYLOAD_BYTES - JSON.stringify(payload).length)
  return { key: `p.${seq % KEYS}`, payload }
}

/**
 * Starts what the client `name` of packages/bench/browser/clients.mjs connects to.
 * @returns {Promise<{ url: string, send: (messages: readonly object[]) => unknown, stop: () => unknown }>}
 */
export function startServer(name) {
  return SERVERS[name.split(' ')[0]]()
}

async function startWebMq() {
  const server = createServer({ port: 0, logLevel: 'silent' })
  const { url } = await server.start()
  return {
    url,
    send: (messages) => server.publishBatch(messages),
    stop: () => server.stop({ drainMs: 0 }),
  }
}

/** A WebSocket server that says `greeting`, answers by `answer`, and sends each message as `frameOf` has it. */
async function startPlain({ protocol, greeting, answer = () => [], frameOf = JSON.stringify }) {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    ...(protocol && { handleProtocols: () => protocol }),
  })
  await new Promise((resolve) => server.on('listening', resolve))
  server.on('connection', (socket) => {
    if (greeting !== undefined) socket.send(greeting)
    socket.on('message', (data) => {
      for (const text of answer(`${data}`)) socket.send(text)
    })
  })
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    send: (messages) => {
      for (const message of messages) {
        const frame = frameOf(message)
        for (const client of server.clients) client.send(frame)
      }
    },
    stop: () => {
      for (const client of server.clients) client.terminate()
      server.close()
    },
  }
}

const SERVERS = {
  webmq: startWebMq,
  bare: () => startPlain({}),
  'socket.io': async () => {
    const http = createHttpServer()
    const io = new SocketIo(http, { transports: ['websocket'], cors: { origin: '*' } })
    await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve))
    return {
      url: `http://127.0.0.1:${http.address().port}`,
      send: (messages) => {
        for (const { key, payload } of messages) io.emit('message', key, payload)
      },
      stop: () => io.close(),
    }
  },
  centrifuge: () =>
    startPlain({
      // One command per line: https://centrifugal.dev/docs/transports/client_protocol
      answer: (text) =>
        text.split('\n').flatMap((line) => {
          const { id, connect, subscribe } = JSON.parse(line || '{}')
          if (connect) return [JSON.stringify({ id, connect: { client: 'c', version: '0', ping: 25, pong: true } })]
          return subscribe ? [JSON.stringify({ id, subscribe: {} })] : []
        }),
      frameOf: (data) => JSON.stringify({ push: { channel: 'p', pub: { data } } }),
    }),
  anycable: () => {
    const identifier = JSON.stringify({ channel: 'PricesChannel' })
    return startPlain({
      protocol: 'actioncable-v1-json',
      greeting: '{"type":"welcome"}',
      answer: (text) =>
        JSON.parse(text).command === 'subscribe' ? [JSON.stringify({ type: 'confirm_subscription', identifier })] : [],
      frameOf: (message) => JSON.stringify({ identifier, message }),
    })
  },
}
