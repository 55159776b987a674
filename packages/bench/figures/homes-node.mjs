// A node of homes.mjs: the broker's side of a server, without clients. It follows one log, or one log per home over the
// same connection, and publishes what it is told to.
// Usage: node homes-node.mjs ADDRESS
import diagnostics from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseNatsAddress } from '../../broker-nats/dist/address.js'
import { connectTo } from '../../broker-nats/dist/connect.js'
import { LastSeen } from '../../broker-nats/dist/generation-guard.js'
import { NatsLink } from '../../broker-nats/dist/link.js'
import { parseRedisAddress } from '../../broker-redis/dist/address.js'
import { RedisConnection } from '../../broker-redis/dist/connection.js'
import { RedisLog } from '../../broker-redis/dist/log.js'
import { LogLink } from '../../broker-redis/dist/log-link.js'
import { RedisPublisher } from '../../broker-redis/dist/publisher.js'
import { RedisSubscriber } from '../../broker-redis/dist/subscriber.js'
import { capabilitiesOf, RemoteBroker } from '../../server/dist/adapters/brokers/index.js'
import { resolveOptions } from '../../server/dist/doors/options/options.js'
import { historyRulesOf } from '../../server/dist/kernel/ports/history-rules.js'
import { retainRulesOf } from '../../server/dist/kernel/ports/retain-rules.js'

// The library is one of the broker's package.
const require = createRequire(new URL('../../broker-nats/dist/index.js', import.meta.url))
const core = require('@nats-io/transport-node')
const jetStream = require('@nats-io/jetstream')

const [address = ''] = process.argv.slice(2)
const PAYLOAD = Buffer.from(JSON.stringify('x'.repeat(98)))
const KEYS_PER_HOME = 10
const REQUEST_TIMEOUT_MS = 20_000
const CONNECT_MS = 20_000

/** Counts what the broker sends, by the sockets to it. */
const sockets = []
diagnostics.subscribe('net.client.socket', ({ socket }) => {
  sockets.push(socket)
})

/** Logs at a NATS over one connection. */
async function natsDrivers() {
  const parsed = parseNatsAddress(address)
  const host = parsed.hosts[process.pid % parsed.hosts.length]
  const settings = {
    name: 'homes',
    authenticator: () => undefined,
    tls: undefined,
    inboxPrefix: `_INBOX.${process.pid}`,
  }
  const { connection } = await connectTo(core, host, settings, AbortSignal.timeout(CONNECT_MS))
  const manager = await jetStream.jetstreamManager(connection, { checkAPI: false, timeout: REQUEST_TIMEOUT_MS })
  // A link that ends leaves the connection to the others.
  const shared = Object.create(connection, { close: { value: async () => undefined } })
  return (options) => {
    let linkCount = 0
    const lastSeen = new LastSeen()
    return {
      name: 'nats',
      takesBundles: true,
      capabilities: capabilitiesOf(options, true),
      connect: async (context, events) => {
        const inbox = `_INBOX.${context.node}${++linkCount}`
        const streamOptions = { ...options, replicaCount: parsed.replicaCount }
        const log = { core, jetStream, manager, options: streamOptions, lastSeen, inbox }
        const link = new NatsLink({ connection: shared, destroy: () => undefined }, context, events, log)
        await link.probe()
        return link
      },
    }
  }
}

/** Logs at a Redis over one pair of connections. */
async function redisDrivers() {
  const parsed = parseRedisAddress(address)
  const context = { node: String(process.pid).padStart(16, '0'), heartbeatMs: 10_000 }
  const settings = { address: parsed, context, hideSecrets: (text) => text }
  const open = () => RedisConnection.open(settings, undefined, AbortSignal.timeout(CONNECT_MS))
  const [publishing, subscribed] = await Promise.all([open(), open()])
  const linkOf = new Map()
  const fail = (cause) => {
    throw cause
  }
  const subscriber = new RedisSubscriber(
    subscribed.redis,
    (message) => linkOf.get(message.channel.toString('latin1'))?.take(message),
    fail,
  )
  return (options) => ({
    name: 'redis',
    takesBundles: true,
    capabilities: capabilitiesOf(options, true),
    connect: async ({ node }, events) => {
      const redisLog = new RedisLog(options, false)
      const server = {
        ask: (send) => send(publishing.redis),
        subscribe: (_kind, name) => {
          linkOf.set(name, link)
          return subscriber.request('subscribe', name)
        },
        lose: fail,
      }
      const reports = {
        alive: () => undefined,
        confirmed: (sequence, duplicateOf) => events.confirmed(sequence, false, duplicateOf),
        refused: (sequence, cause) => events.refused(sequence, cause),
        lose: fail,
      }
      const link = new LogLink(redisLog, server, new RedisPublisher(publishing.redis, node, false, reports), events)
      const end = () => {
        link.stop()
        linkOf.delete(redisLog.channel)
        subscriber.request('unsubscribe', redisLog.channel).catch(() => undefined)
      }
      return {
        log: link,
        bind: async () => undefined,
        unbind: async () => undefined,
        publish: (message) => link.append(message),
        close: async () => end(),
        destroy: end,
      }
    },
  })
}

const driverOf = await (address.startsWith('nats') ? natsDrivers() : redisDrivers())
const counts = { received: 0, wanted: 0, gaps: 0 }
let brokers = new Map()
let homes = []

/** @param isOne One log for all; otherwise one for each home. */
async function open({ prefix, isOne, wanted, maxMessages }) {
  homes = wanted
  const wantedHomes = new Set(wanted.map((home) => `h${home}`))
  const sink = {
    deliver: ({ key }) => {
      counts.received++
      const isWanted = wantedHomes.has(key.slice(4, key.indexOf('.', 4)))
      if (isWanted) counts.wanted++
      return isWanted
    },
    gap: () => {
      counts.gaps++
    },
    refused: () => undefined,
    status: () => undefined,
  }
  const start = async (name) => {
    const resolved = resolveOptions({
      brokerNamespace: `${prefix}-${name}`,
      history: ['log.#=1000'],
      historyMaxMessages: maxMessages,
      historyMaxBytes: maxMessages * 256,
      brokerTimeoutMs: 60_000,
      brokerStartTimeoutMs: 60_000,
    })
    const options = { ...resolved, history: historyRulesOf(resolved), retain: retainRulesOf(resolved) }
    const broker = new RemoteBroker({ linkVersion: 1, address, ...driverOf(options) }, options)
    await broker.start(sink)
    return broker
  }
  const one = isOne ? start('one') : undefined
  const started = await Promise.all(wanted.map(async (home) => [home, await (one ?? start(`h${home}`))]))
  brokers = new Map(started)
}

async function close() {
  for (const broker of new Set(brokers.values())) await broker.stop(1_000)
  brokers = new Map()
}

let publishedCount = 0

/** Publishes bursts, evenly, to the homes in turn. */
async function publish({ perSecond, burst, seconds, limit = Number.POSITIVE_INFINITY }) {
  const latencies = []
  const pending = []
  const startMs = performance.now()
  const one = async () => {
    const at = publishedCount++
    const home = homes[at % homes.length]
    const key = `log.h${home}.k${at % KEYS_PER_HOME}`
    const beganMs = performance.now()
    await brokers.get(home).publish({ key, payload: PAYLOAD, isBinary: false })
    latencies.push(performance.now() - beganMs)
  }
  let count = 0
  // Nodes do not publish at the same instant.
  await sleep((Math.random() * (1_000 * burst)) / perSecond)
  while (performance.now() - startMs < seconds * 1_000 && count < limit) {
    const due = Math.min(limit, Math.floor((((performance.now() - startMs) / 1_000) * perSecond) / burst) * burst)
    for (; count < due; count++) pending.push(one())
    const nextMs = ((count + burst) / perSecond) * 1_000 - (performance.now() - startMs)
    await sleep(Math.max(1, nextMs))
  }
  await Promise.all(pending)
  return { count, latencies }
}

/** As fast as it is accepted. */
async function fill({ perHome }) {
  for (const home of homes)
    for (let at = 0; at < perHome; at += 200)
      await Promise.all(
        Array.from({ length: Math.min(200, perHome) }, (_, index) =>
          brokers
            .get(home)
            .publish({ key: `log.h${home}.k${(at + index) % KEYS_PER_HOME}`, payload: PAYLOAD, isBinary: false }),
        ),
      )
}

/** A client comes back that has missed the last messages of a key: read in turn from all homes. */
async function resume({ home, missed, reads }) {
  const broker = brokers.get(home)
  const last = await broker.read({ last: missed }, [`log.h${home}.k1`])
  const since = last.messages[0].position
  let found = 0
  const before = process.cpuUsage()
  const startMs = performance.now()
  for (let at = 0; at < reads; at++) found += (await broker.read({ since }, [`log.h${home}.k1`])).messages.length
  const { user, system } = process.cpuUsage(before)
  return { cpuUs: (user + system) / reads, ms: (performance.now() - startMs) / reads, found: found / reads }
}

function usage() {
  const { user, system } = process.cpuUsage()
  const sum = (field) => sockets.reduce((total, socket) => total + (socket[field] ?? 0), 0)
  const { voluntaryContextSwitches: sleeps } = process.resourceUsage()
  return {
    ...counts,
    sleeps,
    systemUs: system,
    cpuUs: user + system,
    bytesRead: sum('bytesRead'),
    bytesWritten: sum('bytesWritten'),
    rss: process.memoryUsage.rss(),
  }
}

const verbs = { open, close, publish, usage, fill, resume, end: () => process.exit(0) }
process.on('message', async ({ verb, ...message }) => {
  const before = usage()
  const beganMs = performance.now()
  try {
    const answer = await verbs[verb](message)
    process.send({ tookMs: performance.now() - beganMs, usedUs: usage().cpuUs - before.cpuUs, ...answer })
  } catch (cause) {
    process.send({ failed: String(cause.stack) })
  }
})
process.send({})
