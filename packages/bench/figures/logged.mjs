// CPU time per logged message on two nodes: one publishes as fast as the broker accepts, the other follows the log. Their
// listeners are in their processes. Fails when a message does not arrive once. A listener of more than the log (`--listen
// '#'`) also gets each message beside the log, and drops that copy.
// `--trace` plays each round three times: without a trace, with one that is carried, as without an SDK, and with one whose
// spans go to a collector on loopback.
// Usage: node figures/logged.mjs --broker nats [--listen '#'] [--seconds 5] [--rounds 1] [--root <another checkout>] [--json <file>] [--trace]
//   [--cpu-prof <folder>: a CPU profile of each node, its start included]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort, startNats, startRabbitmq, startRedis } from '../../services/dist/index.js'
import { column, report } from './record.mjs'

const NODE = fileURLToPath(new URL('logged-node.mjs', import.meta.url))
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const FLOOD = { publishers: 256, keys: 10 }
/** Compiles and grows what the nodes need. */
const WARM_UP_SECONDS = 1.5
const SETTLE_MS = 300
const US_PER_SECOND = 1_000_000

const { values } = parseArgs({
  options: {
    broker: { type: 'string', default: 'nats' },
    listen: { type: 'string', default: '#' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '1' },
    root: { type: 'string', default: ROOT },
    json: { type: 'string' },
    trace: { type: 'boolean', default: false },
    'cpu-prof': { type: 'string' },
  },
})
const { broker, listen, seconds, rounds, root, json, trace, 'cpu-prof': profiles } = values

/** Flags of Node. */
const PROFILING = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`]

const START = {
  nats: () => startNats({ isPrivate: true, hasJetStream: true }),
  rabbitmq: () => startRabbitmq({ isPrivate: true }),
  redis: () => startRedis({ isPrivate: true }),
  mesh: async () => ({ stop: () => undefined, cpuSeconds: () => 0 }),
}

/** Takes spans, and answers that it has. */
async function startCollector() {
  const server = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() }
}

/** Where the nodes of a mesh listen, or where their broker is. */
async function placesOf(service) {
  if (broker !== 'mesh') return [{ broker: service.url }, { broker: service.url }]
  const places = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  return places.map((place) => ({ broker: `mesh://${places.join()}`, mesh: { listen: place } }))
}

async function startNode(options, traced) {
  const node = fork(NODE, [root, JSON.stringify(options), listen, traced, collector.url], { execArgv: PROFILING })
  await once(node, 'message', { signal: AbortSignal.timeout(30_000) })
  return node
}

async function ask(node, message) {
  const limitMs = ((message.seconds ?? 0) + 30) * 1_000
  const answer = once(node, 'message', { signal: AbortSignal.timeout(limitMs) })
  node.send(message)
  return (await answer)[0]
}

/** Each play has a log of its own. */
let playCount = 0

async function play(service, traced) {
  const options = { brokerNamespace: `measure-${++playCount}`, history: ['log.#=10000'] }
  const nodes = []
  for (const place of await placesOf(service)) nodes.push(await startNode({ ...options, ...place }, traced))
  try {
    const usage = () => Promise.all(nodes.map((node) => ask(node, {})))
    await ask(nodes[0], { ...FLOOD, seconds: WARM_UP_SECONDS })
    await sleep(SETTLE_MS)
    const before = await usage()
    const brokerBefore = service.cpuSeconds() ?? 0
    const startMs = performance.now()
    const { count } = await ask(nodes[0], { ...FLOOD, seconds: Number(seconds) })
    const tookMs = performance.now() - startMs
    await sleep(SETTLE_MS)
    const after = await usage()
    const lost = nodes.findIndex((_, at) => after[at].heardCount - before[at].heardCount !== count)
    if (lost >= 0) throw new Error(`node ${lost} has heard another number of messages than ${count}`)
    return {
      publisherCpuUs: (after[0].cpuUs - before[0].cpuUs) / count,
      followerCpuUs: (after[1].cpuUs - before[1].cpuUs) / count,
      brokerCpuUs: (((service.cpuSeconds() ?? 0) - brokerBefore) * US_PER_SECOND) / count,
      acceptedPerSecond: (count / tookMs) * 1_000,
    }
  } finally {
    for (const node of nodes) node.send({ isOver: true })
    await Promise.all(nodes.map((node) => once(node, 'exit')))
  }
}

const us = (key, title) => ({ ...column(key, title, 'number', 'lower'), unit: 'us' })

const service = await START[broker]()
const collector = await startCollector()
try {
  const variants = trace ? ['none', 'carried', 'sampled'] : ['none']
  const runs = variants.map(() => [])
  for (let round = 0; round < Number(rounds); round++)
    for (const [index, traced] of variants.entries())
      runs[index].push({ target: trace ? `${broker}, trace ${traced}` : broker, ...(await play(service, traced)) })
  report({
    scenario: 'logged',
    columns: [
      us('publisherCpuUs', 'Publishing node, µs of CPU'),
      us('followerCpuUs', 'Following node, µs'),
      us('brokerCpuUs', 'Broker, µs'),
      column('acceptedPerSecond', 'Accepted/s', 'rate', 'higher'),
    ],
    repeats: runs,
    file: json,
  })
} finally {
  collector.stop()
  await service.stop()
}
