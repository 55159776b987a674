import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { nowUs } from '../../measure/clock.js'
import type { ConnectionRecord, FleetLog, Publication } from './log.js'
import {
  type FleetCommand,
  type FleetEvent,
  type FleetStatus,
  type FleetWorkerData,
  keyOf,
  patternOf,
} from './messages.js'
import { Publisher } from './publisher.js'
import type { RecordedClient } from './recorded-client.js'
import { User } from './user.js'

/** Thread that plays some of the users and publishers. */
const port = parentPort
if (port === null) throw new Error('clients-worker runs as a worker thread only')

const PUBLISH_TICK_MS = 5
const STATUS_INTERVAL_MS = 100

const data = workerData as FleetWorkerData
const startUs = nowUs()
const seen = {
  deliveries: [] as FleetLog['deliveries'][number][],
  gaps: [] as FleetLog['gaps'][number][],
  irregularities: [] as FleetLog['irregularities'][number][],
  acceptedUs: [] as number[],
  retriedUs: [] as number[],
  failures: [] as FleetLog['failures'][number][],
  publications: new Map<string, Publication[]>(),
}
const optionsOf = (name: string) => ({ name, url: data.url, heartbeatTimeoutMs: data.heartbeatTimeoutMs })
const rooms = Array.from({ length: data.rooms }, (_, room) => room)
const publishers = ownOf(data.publishers).map((number) => {
  const keys = rooms.map((room) => keyOf((room + number) % data.rooms, number))
  return new Publisher(optionsOf(`publisher-${number}`), { ...data, keys }, seen)
})
const users = ownOf(data.users).map((number) => {
  const room = number % data.rooms
  const keys = Array.from({ length: data.publishers }, (_, publisher) => keyOf(room, publisher))
  const options = { ...optionsOf(`user-${number}`), isStream: number < data.eventStreams }
  return { number, pattern: patternOf(room), user: new User(options, keys, seen) }
})

const publishing = setInterval(() => {
  for (const publisher of publishers) publisher.publishDue()
}, PUBLISH_TICK_MS)
const reporting = setInterval(() => post({ type: 'status', status: statusNow() }), STATUS_INTERVAL_MS)

port.on('message', ({ type }: FleetCommand) => {
  clearInterval(publishing)
  if (type === 'finish') void finish()
})

await Promise.all(publishers.map((publisher, index) => publisher.start(index / publishers.length)))
for (const { number, pattern, user } of users) {
  const waitMs = (number / data.users) * data.rampMs - (nowUs() - startUs) / 1_000
  if (waitMs > 1) await sleep(waitMs)
  user.start(pattern)
}

function ownOf(count: number): number[] {
  return Array.from({ length: count }, (_, number) => number).filter(
    (number) => number % data.workerCount === data.worker,
  )
}

function clients() {
  return [...publishers, ...users.map(({ user }) => user)].map(({ client }) => client)
}

function countByNode(own: readonly RecordedClient[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { node } of own) if (node !== undefined) counts[node] = (counts[node] ?? 0) + 1
  return counts
}

function statusNow(): FleetStatus {
  const trouble = clients().find(({ node, trouble }) => node === undefined && trouble !== null)?.trouble ?? null
  const pending = publishers.map((publisher) => publisher.pending)
  const oldestUs = Math.min(...pending.map((one) => one.oldestUs))
  return {
    readyCount: [...publishers, ...users.map(({ user }) => user)].filter(({ isReady }) => isReady).length,
    connections: countByNode(clients()),
    publisherConnections: countByNode(publishers.map(({ client }) => client)),
    deliveredCount: seen.deliveries.length,
    pendingCount: pending.reduce((sum, { count }) => sum + count, 0),
    oldestPendingMs: oldestUs === Number.POSITIVE_INFINITY ? 0 : Math.max(0, (nowUs() - oldestUs) / 1_000),
    trouble,
  }
}

async function finish(): Promise<void> {
  clearInterval(reporting)
  const connections: ConnectionRecord[] = clients().flatMap((client) => client.connections)
  const records = users.map(({ user }) => user.record).filter((record) => record !== undefined)
  // Posted before the clients are closed: their own end is not part of the run.
  post({ type: 'log', log: { ...seen, connections, users: records } })
  await Promise.all(clients().map((client) => client.close()))
  port?.close()
}

function post(event: FleetEvent): void {
  port?.postMessage(event)
}
