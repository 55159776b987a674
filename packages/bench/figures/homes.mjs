// What a log for each home would save (ADR 89): nodes that need a few of many homes follow one log for all, or a log of
// each of their homes, at the same load. Each node publishes to its homes. Fails when messages are missing.
// `--apart`: one more node publishes everything, and is not counted.
// `--opening`: instead, what it costs to follow a log from its beginning, and to resume from memory then.
// Usage: node figures/homes.mjs --broker nats|nats-cluster|redis [--nodes 32] [--homes 64] [--each 4]
//   [--per-second 640] [--burst 1] [--seconds 8] [--rounds 3] [--apart] [--opening]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { freePort, startNats, startRedis } from '../../services/dist/index.js'

const NODE = fileURLToPath(new URL('homes-node.mjs', import.meta.url))
const SETTLE_MS = 1_000
const IDLE_SECONDS = 4
const STARTING = 8
const US_PER_SECOND = 1_000_000

const { values } = parseArgs({
  options: {
    broker: { type: 'string', default: 'nats' },
    nodes: { type: 'string', default: '32' },
    homes: { type: 'string', default: '64' },
    each: { type: 'string', default: '4' },
    'per-second': { type: 'string', default: '640' },
    burst: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    opening: { type: 'boolean', default: false },
    apart: { type: 'boolean', default: false },
  },
})
const [nodeCount, homeCount, each, perSecond, burst, seconds, rounds] = [
  'nodes',
  'homes',
  'each',
  'per-second',
  'burst',
  'seconds',
  'rounds',
].map((name) => Number(values[name]))

const START = {
  nats: async () => {
    const server = await startNats({ isPrivate: true, hasJetStream: true })
    return { url: server.url, servers: [server] }
  },
  'nats-cluster': async () => {
    const ports = await Promise.all([freePort(), freePort(), freePort()])
    const routes = ports.map((port) => `nats-route://127.0.0.1:${port}`).join()
    const configOf = (port) =>
      `server_name: s${port}\ncluster { name: c, listen: "127.0.0.1:${port}", routes: [${routes}] }`
    const servers = await Promise.all(ports.map((port) => startNats({ hasJetStream: true, config: configOf(port) })))
    const hosts = servers.map(({ url }) => new URL(url).host).join()
    await sleep(4_000)
    return { url: `nats://${hosts}?replicas=3`, servers }
  },
  redis: async () => {
    const server = await startRedis({ isPrivate: true })
    return { url: server.url, servers: [server] }
  },
}

const { url, servers } = await START[values.broker]()
const brokerCpuUs = () => servers.reduce((sum, server) => sum + (server.cpuSeconds() ?? 0), 0) * US_PER_SECOND
const nodes = []
/** With `--apart`. */
let publisher

async function startNode() {
  // Without collections of an idle heap, which cost more than the messages, and come when they like.
  const node = fork(NODE, [url], { execArgv: ['--no-memory-reducer'] })
  await once(node, 'message', { signal: AbortSignal.timeout(60_000) })
  return node
}

async function ask(node, verb, message = {}) {
  const answer = once(node, 'message', { signal: AbortSignal.timeout(200_000) })
  node.send({ verb, ...message })
  const [result] = await answer
  if (result.failed !== undefined) throw new Error(result.failed)
  return result
}

const askAll = (verb, messageOf = () => ({})) =>
  Promise.all(nodes.map((node, index) => ask(node, verb, messageOf(index))))
const total = (answers, field) => answers.reduce((sum, answer) => sum + answer[field], 0)
/** Overlapping, so that each home is of `nodes * each / homes` nodes. */
const homesOf = (index) =>
  Array.from({ length: each }, (_, at) => (Math.floor((index * homeCount) / nodeCount) + at) % homeCount)
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
const quantile = (numbers, share) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * share)] ?? 0

async function whileMeasured(work) {
  const before = await askAll('usage')
  const brokerBefore = brokerCpuUs()
  const startMs = performance.now()
  const result = await work()
  const tookMs = performance.now() - startMs
  const broker = brokerCpuUs() - brokerBefore
  const after = await askAll('usage')
  const grown = (field) => total(after, field) - total(before, field)
  return { result, tookMs, broker, grown, after }
}

let play = 0

async function measure(isOne, isWarm) {
  const prefix = `p${process.pid}-${++play}`
  for (let from = 0; from < nodes.length; from += STARTING)
    await Promise.all(
      nodes
        .slice(from, from + STARTING)
        .map((node, index) => ask(node, 'open', { prefix, isOne, wanted: homesOf(from + index), maxMessages: 10_000 })),
    )
  const all = Array.from({ length: homeCount }, (_, home) => home)
  if (publisher !== undefined) await ask(publisher, 'open', { prefix, isOne, wanted: all, maxMessages: 10_000 })
  const perNode = { perSecond: perSecond / nodeCount, burst, seconds }
  const publish = (verb, load) =>
    publisher === undefined ? askAll(verb, () => load) : Promise.all([ask(publisher, verb, load)])
  const load = publisher === undefined ? perNode : { perSecond, burst, seconds }
  // Compiles what the nodes need.
  await publish('fill', { perHome: isWarm ? 4 : 200 })
  await sleep(SETTLE_MS)
  const idle = await whileMeasured(() => sleep(IDLE_SECONDS * 1_000))
  const busy = await whileMeasured(async () => {
    const answers = await publish('publish', load)
    await sleep(SETTLE_MS)
    return answers
  })
  await askAll('close')
  if (publisher !== undefined) await ask(publisher, 'close')
  const count = total(busy.result, 'count')
  const perHome = Array.from(
    { length: homeCount },
    (_, home) => nodes.filter((_, index) => homesOf(index).includes(home)).length,
  )
  const expected = isOne ? count * nodeCount : (count * perHome.reduce((a, b) => a + b)) / homeCount
  const received = busy.grown('received')
  if (isOne ? received !== expected : Math.abs(received / expected - 1) > 0.02)
    throw new Error(`${received} messages have come, not ${expected}`)
  if (busy.grown('gaps') > 0) throw new Error('a gap')
  const latencies = busy.result.flatMap(({ latencies }) => latencies)
  const idleShare = busy.tookMs / idle.tookMs
  return {
    received: received / count,
    bytesPerNode: busy.grown('bytesRead') / count / nodeCount,
    nodesUs: busy.grown('cpuUs') / count,
    nodesKernelUs: busy.grown('systemUs') / count,
    nodesWakes: busy.grown('sleeps') / count,
    nodesBusyUs: (busy.grown('cpuUs') - idle.grown('cpuUs') * idleShare) / count,
    brokerUs: busy.broker / count,
    brokerBusyUs: (busy.broker - idle.broker * idleShare) / count,
    idleNodeMs: idle.grown('cpuUs') / 1_000 / nodeCount / (idle.tookMs / 1_000),
    idleBrokerMs: idle.broker / 1_000 / (idle.tookMs / 1_000),
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    rssMb: total(busy.after, 'rss') / nodeCount / 1e6,
  }
}

function table(rowsOf) {
  const [one, homes] = ['one', 'homes'].map((name) => rowsOf[name])
  const names = Object.keys(one[0])
  const rows = names.map((name) => {
    const [a, b] = [one, homes].map((rows) => median(rows.map((row) => row[name])))
    const ratios = one.map((row, index) => row[name] / homes[index][name])
    return [
      name,
      { 'one log': a, homes: b, ratio: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) },
    ]
  })
  console.table(
    Object.fromEntries(
      rows.map(([name, row]) => [
        name,
        Object.fromEntries(Object.entries(row).map(([key, value]) => [key, Number(value.toPrecision(3))])),
      ]),
    ),
  )
}

/** One node fills the logs, another one comes. */
async function opening() {
  const [filler, comer] = nodes
  const perHome = 400
  const runs = []
  for (let round = 0; round < rounds; round++)
    for (const [isOne, homes] of [
      [true, homeCount],
      [false, 1],
      [false, 4],
      [false, 16],
    ]) {
      const prefix = `p${process.pid}-${++play}`
      const wanted = Array.from({ length: homes }, (_, home) => home)
      const settings = { prefix, isOne, wanted, maxMessages: perHome * homeCount }
      await ask(filler, 'open', settings)
      await ask(filler, 'fill', { perHome })
      await sleep(SETTLE_MS)
      const brokerBefore = brokerCpuUs()
      const opened = await ask(comer, 'open', settings)
      await sleep(200)
      const broker = brokerCpuUs() - brokerBefore
      const read = await ask(comer, 'resume', { home: 0, missed: 20, reads: 2_000 })
      runs.push({
        what: isOne ? 'one log' : `${homes} homes`,
        openMs: opened.tookMs,
        openNodeMs: opened.usedUs / 1_000,
        openBrokerMs: broker / 1_000,
        resumeUs: read.cpuUs,
        found: read.found,
      })
      await ask(comer, 'close')
      await ask(filler, 'close')
    }
  const names = [...new Set(runs.map(({ what }) => what))]
  console.table(
    names.map((what) => {
      const rows = runs.filter((run) => run.what === what)
      const columns = ['openMs', 'openNodeMs', 'openBrokerMs', 'resumeUs', 'found']
      return {
        what,
        ...Object.fromEntries(
          columns.map((column) => [column, Number(median(rows.map((row) => row[column])).toPrecision(3))]),
        ),
      }
    }),
  )
}

try {
  const count = values.opening ? 2 : nodeCount
  for (let from = 0; from < count; from += STARTING)
    nodes.push(...(await Promise.all(Array.from({ length: Math.min(STARTING, count - from) }, startNode))))
  if (values.apart) publisher = await startNode()
  if (values.opening) await opening()
  else {
    const rowsOf = { one: [], homes: [] }
    // The first round is not counted.
    for (let round = 0; round <= rounds; round++)
      for (const name of round % 2 === 0 ? ['one', 'homes'] : ['homes', 'one']) {
        const row = await measure(name === 'one', round > 0)
        if (round > 0) rowsOf[name].push(row)
      }
    console.log(JSON.stringify({ broker: values.broker, nodeCount, homeCount, each, perSecond, burst, seconds }))
    table(rowsOf)
  }
} finally {
  for (const node of nodes) node.kill()
  publisher?.kill()
  for (const server of servers) await server.stop()
}
