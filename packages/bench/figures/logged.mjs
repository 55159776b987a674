// CPU time per logged message on two nodes: one publishes as fast as the broker accepts, the other follows the log. Their
// listeners are in their processes. Fails when a message does not arrive once. A listener of more than the log (`--listen
// '#'`) also gets each message beside the log, and drops that copy.
// Usage: node figures/logged.mjs --broker nats [--listen '#'] [--seconds 5] [--rounds 1] [--root <another checkout>] [--json <file>]
//   [--cpu-prof <folder>: a CPU profile of each node, its start included]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startNats, startRabbitmq, startRedis } from '../../services/dist/index.js'
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
    'cpu-prof': { type: 'string' },
  },
})
const { broker, listen, seconds, rounds, root, json, 'cpu-prof': profiles } = values

/** Flags of Node. */
const PROFILING = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`]

const START = {
  nats: () => startNats({ isPrivate: true, hasJetStream: true }),
  rabbitmq: () => startRabbitmq({ isPrivate: true }),
  redis: () => startRedis({ isPrivate: true }),
}

async function startNode(options) {
  const node = fork(NODE, [root, JSON.stringify(options), listen], { execArgv: PROFILING })
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

async function play(service) {
  const options = { broker: service.url, brokerNamespace: `measure-${++playCount}`, history: ['log.#=10000'] }
  const nodes = [await startNode(options), await startNode(options)]
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
try {
  const runs = []
  for (let round = 0; round < Number(rounds); round++) runs.push({ target: broker, ...(await play(service)) })
  report({
    scenario: 'logged',
    columns: [
      us('publisherCpuUs', 'Publishing node, µs of CPU'),
      us('followerCpuUs', 'Following node, µs'),
      us('brokerCpuUs', 'Broker, µs'),
      column('acceptedPerSecond', 'Accepted/s', 'rate', 'higher'),
    ],
    repeats: [runs],
    file: json,
  })
} finally {
  await service.stop()
}
