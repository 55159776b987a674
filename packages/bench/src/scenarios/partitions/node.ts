import { createServer, type WebMQServer } from 'webmq-server'
import { nowUs } from '../../measure/clock.js'
import type { NodeAnswers, NodeCommand, NodeEvent, NodeMark, NodeOptions } from './messages.js'
import { prepareRooms, publishRooms, RoomReceiver } from './node-traffic.js'
import { keyOf } from './rooms.js'

/** A node of the scenario, in a process of its own: it publishes to rooms, or listens to some, without connections. */
const receiver = new RoomReceiver()
let server: WebMQServer | undefined
let gapCount = 0

process.on('message', ({ id, command }: { readonly id: number; readonly command: NodeCommand }) => {
  answer(command).then(
    (answer) => send({ type: 'answer', id, answer }),
    (error: unknown) => send({ type: 'failed', id, message: error instanceof Error ? error.message : String(error) }),
  )
})

// The channel closes when the bench ends this process, and when the bench is killed. Exits at once: a clean stop is not
// measured.
process.on('disconnect', () => process.exit(0))
// Ctrl-C reaches the whole process group; the bench decides when its nodes end.
process.on('SIGINT', () => undefined)

async function answer(command: NodeCommand): Promise<NodeAnswers[keyof NodeAnswers]> {
  switch (command.type) {
    case 'start':
      server = await started(command.options)
      return null
    case 'listen':
      await listen(command.rooms)
      return null
    case 'prepare':
      await prepareRooms(running(), command.plan)
      return null
    case 'publish':
      return await publishRooms(running(), command.plan)
    case 'mark':
      return mark()
  }
}

async function started(options: NodeOptions): Promise<WebMQServer> {
  const starting = createServer({ host: '127.0.0.1', port: 0, logLevel: 'error', transport: 'auto', ...options })
  await starting.start()
  return starting
}

async function listen(rooms: readonly number[]): Promise<void> {
  const onGap = () => gapCount++
  const listens = rooms.map((room) =>
    running().listen(keyOf(room), (payload) => receiver.take(Buffer.from(payload as Uint8Array)), { onGap }),
  )
  await Promise.all(listens.map(({ ready }) => ready))
}

function mark(): NodeMark {
  const { user, system } = process.cpuUsage()
  const { receivedCount, acceptedCount } = running().stats().broker
  return {
    atUs: nowUs(),
    cpuSeconds: (user + system) / 1_000_000,
    rssBytes: process.memoryUsage.rss(),
    receivedCount,
    acceptedCount,
    ...receiver.counts,
    gapCount,
    latencyMs: receiver.takeLatency(),
  }
}

function running(): WebMQServer {
  if (server === undefined) throw new Error('the node has not started')
  return server
}

function send(event: NodeEvent): void {
  process.send?.(event)
}
