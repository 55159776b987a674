// CPU time of a client's process per received message, in Node over the package `ws`: WebMQ's client beside a bare
// `onmessage` with JSON.parse, Socket.IO, Centrifuge and AnyCable. Each gets the same messages with payloads of 200 bytes,
// in turns. Fails when a client has not handled each message once.
// Usage: node browser/node.mjs [--per-second 5000] [--rounds 5] [--seconds 4] [--json <file>]
import { fork } from 'node:child_process'
import { on } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { column, report } from '../figures/record.mjs'
import { messageOf, startServer } from './peers.mjs'

const { values } = parseArgs({
  options: {
    'per-second': { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    json: { type: 'string' },
  },
})
const [perSecond, rounds, seconds] = [values['per-second'], values.rounds, values.seconds].map(Number)
const CLIENTS = ['bare', 'webmq', 'socket.io', 'centrifuge', 'anycable']
const CLIENT_PROCESS = fileURLToPath(new URL('node-process.mjs', import.meta.url))
/** Compiles and grows what the client needs. */
const WARM_UP_SECONDS = 2
const TICK_MS = 1
const ANSWER_TIMEOUT_MS = 10_000
const POLL_MS = 50

/** Sends message `first` and those after it at an even pace, until it gets to `last`. */
async function play(send, first, last) {
  const startMs = performance.now()
  for (let seq = first; seq <= last; ) {
    const due = Math.min(last, first + Math.floor(((performance.now() - startMs) / 1_000) * perSecond))
    const messages = []
    while (seq <= due) messages.push(messageOf(seq++))
    await send(messages)
    await sleep(TICK_MS)
  }
}

async function measure(name) {
  const server = await startServer(name)
  const client = fork(CLIENT_PROCESS, [name, server.url])
  try {
    const signal = AbortSignal.timeout(2 * ANSWER_TIMEOUT_MS + (WARM_UP_SECONDS + seconds) * 2_000)
    const reports = on(client, 'message', { signal, close: ['exit'] })
    const next = async () => {
      const { value, done } = await reports.next().catch((cause) => {
        throw new Error(`${name} gave no answer`, { cause })
      })
      if (done) throw new Error(`the process of ${name} ended`)
      return value[0]
    }
    const ask = () => {
      client.send('report')
      return next()
    }
    await next()
    const playTo = async (first, last) => {
      await play(server.send, first, last)
      const deadlineMs = performance.now() + ANSWER_TIMEOUT_MS
      let report = await ask()
      while (report.lastSeq < last && performance.now() < deadlineMs) {
        await sleep(POLL_MS)
        report = await ask()
      }
      if (report.handledCount === last && report.lastSeq === last) return report
      throw new Error(`${name} has handled ${report.handledCount} of ${last} messages, the last one ${report.lastSeq}`)
    }
    const warmCount = WARM_UP_SECONDS * perSecond
    const count = seconds * perSecond
    const before = await playTo(1, warmCount)
    const startMs = performance.now()
    const after = await playTo(warmCount + 1, warmCount + count)
    const rate = (count / (performance.now() - startMs)) * 1_000
    return { rate, cpuUs: (after.cpuUs - before.cpuUs) / count, waits: (after.waits - before.waits) / count }
  } finally {
    client.kill()
    await server.stop()
  }
}

const results = Object.fromEntries(CLIENTS.map((name) => [name, []]))
for (let round = 0; round < rounds; round++) {
  // Each round begins with another client.
  for (let turn = 0; turn < CLIENTS.length; turn++) {
    const name = CLIENTS[(round + turn) % CLIENTS.length]
    results[name].push(await measure(name))
  }
}
report({
  scenario: 'client-cpu',
  columns: [
    { ...column('cpuUs', 'µs of CPU per message', 'number', 'lower'), unit: 'us' },
    column('ofBare', 'Of bare', 'ratio', 'lower'),
    column('messagesPerSecond', 'Messages/s', 'rate'),
    // Messages that come together wake the process once.
    column('waits', 'Waits per message', 'number'),
  ],
  repeats: CLIENTS.map((name) =>
    results[name].map(({ cpuUs, rate, waits }, round) => ({
      target: name,
      cpuUs,
      ofBare: cpuUs / results.bare[round].cpuUs,
      messagesPerSecond: rate,
      waits,
    })),
  ),
  file: values.json,
})
