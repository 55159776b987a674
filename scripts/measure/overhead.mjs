// What metrics, limits, tokens and the audit log cost together: deliveries and inbound messages per server CPU second,
// with all of them and without, in turns.
// Usage: node scripts/measure/overhead.mjs [runs]
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { frame, openWebSocket } from './clients.mjs'
import { measure, median } from './run.mjs'

const [runs = 5] = process.argv.slice(2).map(Number)
const READERS = 1_000
const PUBLISHERS = 100
const INBOUND_PER_SECOND = 60_000
const TICK_MS = 10
const SECRET = 'a secret of more than 32 bytes for a measurement'
const folder = mkdtempSync(path.join(tmpdir(), 'webmq-measure-'))

const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const claims = { sub: 'ada', webmq: { grants: [{ keys: ['#'], allow: ['listen', 'publish'] }] } }
const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
const token = `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`

const WITH = {
  jwt: { secret: SECRET },
  metrics: 'all',
  auditLog: path.join(folder, 'audit.log'),
  auditLevel: 'listens',
  maxConnectionsPerUser: 100_000,
  maxPublishesPerSecond: 100_000,
  maxPublishBytesPerSecond: 100_000_000,
  maxPublishesPerSecondPerUser: 1_000_000,
  maxPublishBytesPerSecondPerUser: 1_000_000_000,
  maxListensPerUser: 100_000,
}
const SETUPS = { without: [{}, undefined], with: [WITH, token] }
const QUIET = { perSecond: 0, seconds: 6, payloadBytes: 0 }

function publishAll(sockets) {
  const startedMs = performance.now()
  let count = 0
  const timer = setInterval(() => {
    const due = Math.min(6, (performance.now() - startedMs) / 1_000) * INBOUND_PER_SECOND
    const batch = Math.floor((due - count) / PUBLISHERS)
    count += batch * PUBLISHERS
    for (const socket of sockets) {
      if (batch > 0) socket.write(Buffer.concat(Array(batch).fill(frame('publish - other.a\n{"text":"hello"}'))))
    }
  }, TICK_MS)
  return () => clearInterval(timer)
}

const rates = {}
const note = (name, count, cpuSeconds) => {
  const rate = Math.round(count / cpuSeconds)
  rates[name] = [...(rates[name] ?? []), rate]
  console.log(`${name}: ${count} in ${cpuSeconds.toFixed(2)} CPU s, ${rate} per CPU second`)
}
for (let run = 0; run < runs; run++) {
  for (const [setup, [options, token]] of Object.entries(SETUPS)) {
    const reader = (port) => openWebSocket(port, { token, first: 'listen 1 measure.#' })
    const fanOut = { perSecond: 500, seconds: 6, payloadBytes: 100 }
    const out = await measure({ options, publishing: fanOut, clients: Array(READERS).fill(reader) })
    note(`fan-out ${setup}`, out.deliveredCount, out.cpuSeconds)
    const publisher = (port) => openWebSocket(port, { token })
    const clients = Array(PUBLISHERS).fill(publisher)
    const inbound = await measure({ options, publishing: QUIET, clients, work: publishAll })
    note(`inbound ${setup}`, inbound.receivedCount, inbound.cpuSeconds)
  }
}
for (const what of ['fan-out', 'inbound']) {
  const [without, withAll] = [median(rates[`${what} without`]), median(rates[`${what} with`])]
  console.log(`${what}: median ${without} without, ${withAll} with, ratio ${(withAll / without).toFixed(3)}`)
}
rmSync(folder, { recursive: true })
