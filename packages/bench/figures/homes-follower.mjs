// CPU time of one that follows a log at NATS, per message that none of its listeners wants: a node of today, the
// library alone, a parser in JavaScript without a library, and one in Rust. Replayed at once, and live at a rate.
// Usage: node figures/homes-follower.mjs [--messages 100000] [--rates 500,5000] [--seconds 8] [--rounds 3]
import { execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startNats } from '../../services/dist/index.js'

const NODE = fileURLToPath(new URL('homes-node.mjs', import.meta.url))
const HOMES = Array.from({ length: 64 }, (_, home) => home)
const { values } = parseArgs({
  options: {
    messages: { type: 'string', default: '100000' },
    rates: { type: 'string', default: '500,5000' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    as: { type: 'string' },
    url: { type: 'string' },
    stream: { type: 'string' },
    count: { type: 'string' },
    live: { type: 'boolean', default: false },
  },
})

/** Of its own: JetStream keeps the consumer of an earlier one for a while. */
const SUBJECT = `follower.${process.pid}`
const CONFIG = {
  ack_policy: 'none',
  max_deliver: 1,
  replay_policy: 'instant',
  flow_control: true,
  idle_heartbeat: 5e9,
  mem_storage: true,
  num_replicas: 1,
}
const startOf = () =>
  values.live ? { deliver_policy: 'new' } : { deliver_policy: 'by_start_sequence', opt_start_seq: 1 }

function result(before, count) {
  const { user, system } = process.cpuUsage(before)
  console.log(JSON.stringify({ count, usedUs: user + system }))
  process.exit(0)
}

/** The library's subscription, and a callback that counts. */
async function library(url, stream, wanted) {
  const require = createRequire(new URL('../../broker-nats/dist/index.js', import.meta.url))
  const core = require('@nats-io/transport-node')
  const jetStream = require('@nats-io/jetstream')
  const connection = await core.connect({ servers: new URL(url).host, noAsyncTraces: true })
  const manager = await jetStream.jetstreamManager(connection, { checkAPI: false })
  let count = 0
  let before
  connection.subscribe(SUBJECT, {
    callback: (_, message) => {
      if (message.subject === SUBJECT) {
        const stalled = message.headers?.get('Nats-Consumer-Stalled') ?? ''
        if (stalled !== '') connection.publish(stalled)
        else if (message.reply) message.respond()
      } else if (++count === wanted) result(before, count)
    },
  })
  before = process.cpuUsage()
  await manager.consumers.add(stream, { ...CONFIG, ...startOf(), deliver_subject: SUBJECT })
  console.error('ready')
}

/** No library: reads the lengths, and skips everything else. */
function bare(url, stream, wanted) {
  const { port } = new URL(url)
  const inbox = SUBJECT
  const config = JSON.stringify({
    stream_name: stream,
    config: { ...CONFIG, ...startOf(), deliver_subject: `${inbox}.m` },
  })
  const hello = 'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":1,"lang":"js","version":"0"}\r\n'
  let rest
  let count = 0
  let before
  const bytes = Buffer.allocUnsafe(262_144)
  const take = (chunk) => {
    const data = rest === undefined ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    while (at < data.length) {
      const end = data.indexOf(10, at)
      if (end < 0) break
      const first = data[at]
      if (first !== 0x4d && first !== 0x48) {
        if (data[at + 1] === 0x49 && first === 0x50) socket.write('PONG\r\n')
        at = end + 1
        continue
      }
      let size = 0
      let digits = end - 2
      while (data[digits] !== 0x20) digits--
      for (let digit = digits + 1; digit < end - 1; digit++) size = size * 10 + data[digit] - 48
      if (end + 1 + size + 2 > data.length) break
      if (first === 0x48) {
        const line = data.latin1Slice(at, end).split(' ')
        if (line.length > 5) socket.write(`PUB ${line[3]} 0\r\n\r\n`)
      } else if (data.latin1Slice(at + 4, at + 4 + inbox.length + 2) === `${inbox}.r`) console.error('ready')
      else if (++count === wanted) result(before, count)
      at = end + 1 + size + 2
    }
    rest = at < data.length ? Buffer.from(data.subarray(at)) : undefined
    return true
  }
  const socket = connect({
    host: '127.0.0.1',
    port: Number(port),
    onread: { buffer: bytes, callback: (length) => take(bytes.subarray(0, length)) },
  })
  before = process.cpuUsage()
  socket.write(
    `${hello}SUB ${inbox}.m 1\r\nSUB ${inbox}.r 2\r\nPUB $JS.API.CONSUMER.CREATE.${stream} ${inbox}.r ${config.length}\r\n${config}\r\n`,
  )
}

if (values.as !== undefined) {
  const follow = { library, bare }[values.as]
  await follow(values.url, values.stream, Number(values.count))
} else await measure()

async function measure() {
  const rust = path.join(tmpdir(), `homes-follower-${process.pid}`)
  execFileSync('rustc', [
    '--edition',
    '2021',
    '-C',
    'opt-level=3',
    '-o',
    rust,
    fileURLToPath(new URL('homes-follower.rs', import.meta.url)),
  ])
  const server = await startNats({ isPrivate: true, hasJetStream: true })
  const children = []
  const rows = {}
  const note = (what, name, usPerMessage) => {
    rows[name] ??= {}
    rows[name][what] ??= []
    rows[name][what].push(usPerMessage)
  }
  try {
    const startNode = async () => {
      const node = fork(NODE, [server.url])
      children.push(node)
      await once(node, 'message', { signal: AbortSignal.timeout(60_000) })
      return node
    }
    const ask = async (node, verb, message = {}) => {
      const answer = once(node, 'message', { signal: AbortSignal.timeout(200_000) })
      node.send({ verb, ...message })
      const [got] = await answer
      if (got.failed !== undefined) throw new Error(got.failed)
      return got
    }
    const start = (as, stream, count, live) => {
      const child =
        as === 'rust'
          ? spawn(rust, [
              new URL(server.url).port,
              stream,
              String(count),
              `follower.rust${children.length}`,
              live ? 'live' : 'replay',
            ])
          : spawn(process.execPath, [
              fileURLToPath(import.meta.url),
              '--as',
              as,
              '--url',
              server.url,
              '--stream',
              stream,
              '--count',
              String(count),
              ...(live ? ['--live'] : []),
            ])
      children.push(child)
      const ready = new Promise((resolve) =>
        child.stderr.on('data', (text) => (String(text).includes('ready') ? resolve() : console.error(String(text)))),
      )
      const done = once(child.stdout, 'data').then(([text]) => JSON.parse(text))
      return { ready, done }
    }
    const [filler, follower] = [await startNode(), await startNode()]
    const perHome = Math.ceil(Number(values.messages) / HOMES.length / 200) * 200
    const maxMessages = 4 * perHome * HOMES.length
    const settings = { prefix: 'f', isOne: true, maxMessages }
    await ask(filler, 'open', { ...settings, wanted: HOMES })
    await ask(filler, 'fill', { perHome })
    const stream = 'f-one-log'
    const unwanted = { ...settings, wanted: [64] }
    await ask(follower, 'open', unwanted)
    await ask(follower, 'close')
    for (let round = 0; round < Number(values.rounds); round++) {
      const before = await ask(follower, 'usage')
      const opened = await ask(follower, 'open', unwanted)
      const { received } = await ask(follower, 'usage')
      note('replay', 'today', opened.usedUs / (received - before.received))
      await ask(follower, 'close')
      for (const as of ['library', 'bare', 'rust']) {
        const { usedUs, count } = await start(as, stream, perHome * HOMES.length, false).done
        note('replay', as, usedUs / count)
      }
    }
    await ask(follower, 'open', { ...unwanted })
    for (let round = 0; round < Number(values.rounds); round++)
      for (const perSecond of values.rates.split(',').map(Number)) {
        const limit = perSecond * Number(values.seconds)
        const others = ['library', 'bare', 'rust'].map((as) => [as, start(as, stream, limit, true)])
        await Promise.all(others.map(([, { ready }]) => ready))
        await sleep(500)
        const before = await ask(follower, 'usage')
        await ask(filler, 'publish', { perSecond, burst: 1, seconds: 60, limit })
        const ended = await Promise.all(others.map(async ([as, { done }]) => [as, await done]))
        const after = await ask(follower, 'usage')
        note(`${perSecond}/s`, 'today', (after.cpuUs - before.cpuUs) / (after.received - before.received))
        note(
          `${perSecond}/s`,
          'today: of it in the kernel',
          (after.systemUs - before.systemUs) / (after.received - before.received),
        )
        note(
          `${perSecond}/s`,
          'today: wakes per message',
          (after.sleeps - before.sleeps) / (after.received - before.received),
        )
        for (const [as, { usedUs, count }] of ended) note(`${perSecond}/s`, as, usedUs / count)
      }
    const show = (numbers) =>
      `${numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)].toFixed(2)} (${Math.min(...numbers).toFixed(2)}-${Math.max(...numbers).toFixed(2)})`
    console.log('us of CPU per message')
    console.table(
      Object.fromEntries(
        Object.entries(rows).map(([name, row]) => [
          name,
          Object.fromEntries(Object.entries(row).map(([what, numbers]) => [what, show(numbers)])),
        ]),
      ),
    )
  } finally {
    for (const child of children) child.kill()
    await server.stop()
  }
}
