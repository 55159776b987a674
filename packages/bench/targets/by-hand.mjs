// A server by hand, as one writes it in an afternoon: uWebSockets.js, and the client of the broker. It speaks as much of
// webmq.v1 as the bench's clients need: exact keys, and an `ok` for what the broker has taken, or every node of a mesh.
// It promises nothing: no order, no duplicate filter, no recovery, no limits, and who reads slowly loses messages.

import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { loadUws } from '../dist/targets/load-uws.js'
import { serveTarget, targetSettings } from '../dist/targets/serve-target.js'

const MAX_BACKPRESSURE_BYTES = 16 * 1024 * 1024
const MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
/** Nodes of a mesh start at the same time. */
const CONNECT_ATTEMPTS = 300
const RETRY_MS = 50

const { broker, brokerNamespace: namespace, mesh } = targetSettings()
const { uws: uWS, version } = loadUws()
const app = uWS.App()

/** Sends a message to the connections of this node that listen to its key. */
const deliver = (key, payload) => app.publish(key, `message ${key} -\n${payload}`)

/** By scheme: each resolves to a driver, whose `listen` and `publish` resolve when the broker has it, or return nothing. */
const DRIVERS = {
  async memory() {
    return { listen: () => undefined, publish: deliver }
  },

  async amqp() {
    const { connect } = await import('amqplib')
    const connection = await connect(broker, { noDelay: true })
    const [outbound, inbound] = [await connection.createConfirmChannel(), await connection.createChannel()]
    await outbound.assertExchange(namespace, 'topic')
    const { queue } = await inbound.assertQueue('', { exclusive: true })
    const take = ({ fields, content }) => deliver(fields.routingKey, content.toString())
    await inbound.consume(queue, take, { noAck: true })
    return {
      listen: (key) => inbound.bindQueue(queue, namespace, key),
      publish: (key, payload) =>
        new Promise((resolve, reject) => {
          const confirmed = (error) => (error ? reject(error) : resolve())
          outbound.publish(namespace, key, Buffer.from(payload), {}, confirmed)
        }),
    }
  },

  async redis() {
    const { Redis } = await import('ioredis')
    const [outbound, inbound] = [new Redis(broker), new Redis(broker)]
    const channelOf = (key) => `${namespace}.${key}`
    inbound.on('message', (channel, payload) => deliver(channel.slice(namespace.length + 1), payload))
    return {
      listen: (key) => inbound.subscribe(channelOf(key)),
      publish: (key, payload) => outbound.publish(channelOf(key), payload),
    }
  },

  async nats() {
    const { connect } = await import('@nats-io/transport-node')
    const connection = await connect({ servers: broker })
    const callback = (_, message) => deliver(message.subject.slice(namespace.length + 1), message.string())
    /** One round trip for all that a turn publishes: NATS has then taken it. */
    let flushing
    const flush = async () => {
      await turn()
      flushing = undefined
      await connection.flush()
    }
    return {
      listen(key) {
        connection.subscribe(`${namespace}.${key}`, { callback })
        return connection.flush()
      },
      publish(key, payload) {
        connection.publish(`${namespace}.${key}`, payload)
        flushing ??= flush()
        return flushing
      },
    }
  },

  /** A TCP connection to every other node, a line for every message, and back the number of lines that came. */
  async mesh() {
    const net = await import('node:net')
    const portOf = (place) => Number(place.split(':').at(-1))
    const take = (line) => deliver(line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1))
    const accept = (socket) => {
      let rest = ''
      socket.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop()
        lines.forEach(take)
        if (lines.length > 0) socket.write(`${lines.length}\n`)
      })
    }
    net.createServer(accept).listen(portOf(mesh.listen), '127.0.0.1')
    const others = broker
      .slice('mesh://'.length)
      .split(',')
      .filter((place) => place !== mesh.listen)
    const peers = await Promise.all(others.map(async (place) => lineSender(await connected(net, portOf(place)))))
    return {
      listen: () => undefined,
      publish(key, payload) {
        deliver(key, payload)
        return Promise.all(peers.map((send) => send(`${key} ${payload}\n`)))
      },
    }
  },
}

async function connected(net, port) {
  for (let attempt = 1; ; attempt++) {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    const isOpen = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    if (isOpen) return socket
    if (attempt === CONNECT_ATTEMPTS) throw new Error(`no node listens at port ${port}`)
    await sleep(RETRY_MS)
  }
}

/** Sends a line to a node; the promise resolves when that node has it. */
function lineSender(socket) {
  const waiting = []
  let rest = ''
  socket.setEncoding('utf8').on('data', (text) => {
    const counts = (rest + text).split('\n')
    rest = counts.pop()
    const count = counts.reduce((sum, one) => sum + Number(one), 0)
    for (const resolve of waiting.splice(0, count)) resolve()
  })
  return (line) =>
    new Promise((resolve) => {
      waiting.push(resolve)
      socket.write(line)
    })
}

/** Nothing is tried again. */
function failed(error) {
  process.stderr.write(`${error.stack}\n`)
  process.exit(1)
}

const driver = await DRIVERS[broker.split(':')[0]]()
/** Keys that this node listens to, each with the promise of its driver. */
const listens = new Map()
let connectionCount = 0
let receivedCount = 0

const WELCOME = {
  protocol: 'webmq.v1',
  auth: 'none',
  session: 'by-hand',
  node: 'by-hand',
  version: '0',
  heartbeatMs: 25_000,
  limits: { maxPayloadBytes: MAX_PAYLOAD_BYTES },
}

async function answer(socket, text) {
  const end = text.indexOf('\n')
  const [verb, id, key] = (end < 0 ? text : text.slice(0, end)).split(' ')
  if (verb === 'ping') socket.send('pong')
  if (verb !== 'listen' && verb !== 'publish') return
  if (verb === 'listen') {
    socket.subscribe(key)
    if (!listens.has(key)) listens.set(key, driver.listen(key))
    await listens.get(key)
  } else {
    await driver.publish(key, text.slice(end + 1))
  }
  if (socket.isOpen) socket.send(`ok ${id}`)
}

app.ws('/*', {
  idleTimeout: 0,
  sendPingsAutomatically: false,
  maxPayloadLength: MAX_PAYLOAD_BYTES,
  maxBackpressure: MAX_BACKPRESSURE_BYTES,
  upgrade(response, request, context) {
    const [key, extensions] = ['key', 'extensions'].map((name) => request.getHeader(`sec-websocket-${name}`))
    response.upgrade({}, key, 'webmq.v1', extensions, context)
  },
  open(socket) {
    connectionCount++
    socket.isOpen = true
    socket.send(`welcome\n${JSON.stringify(WELCOME)}`)
  },
  message(socket, message) {
    receivedCount++
    answer(socket, Buffer.from(message).toString()).catch(failed)
  },
  close(socket) {
    connectionCount--
    socket.isOpen = false
  },
})
const listening = await new Promise((resolve) => app.listen('127.0.0.1', 0, resolve))

// It publishes nothing itself: its clients do.
serveTarget({
  // Builds from the npm registry name this differently.
  port: (uWS.us_socket_local_port ?? uWS.getSocketPort)(listening),
  version,
  connectionCount: () => connectionCount,
  receivedCount: () => receivedCount,
})
