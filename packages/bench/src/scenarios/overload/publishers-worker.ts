import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import type { WebMQClient } from 'webmq-client'
import { plainWebSocket } from '../../generator/bench-client.js'
import { nowUs } from '../../measure/clock.js'
import type { PublishersCommand, PublishersData, PublishersEvent, PublishRecord, Refusal } from './messages.js'

/** Thread of clients with the library's defaults, which publish. */

const port = parentPort
if (port === null) throw new Error('publishers-worker runs as a worker thread only')

const TICK_MS = 5
/** Also of what a broker did not answer in time: it comes again. */
const REFUSED = /^error (\S+) (?:E_RATE_LIMIT|E_TIMEOUT)\n/

interface Publisher {
  readonly client: WebMQClient
  readonly key: string
  /** When its next message is due. */
  nextUs: number
}

const { urls, clients, messageSize, root } = workerData as PublishersData
const specifier = root === undefined ? 'webmq-client' : pathToFileURL(join(root, 'packages/client/dist/index.js')).href
const library = (await import(specifier)) as typeof import('webmq-client')
const payload = 'x'.repeat(messageSize)
const messages: PublishRecord[] = []
const refusals: Refusal[] = []
let intervalUs = 0
let utilizationBefore = performance.eventLoopUtilization()

/** A message keeps its request id when it is published again, so the frames say how often it was refused. */
class CountingWebSocket extends plainWebSocket(undefined) {
  constructor(url: string | URL, protocols?: string | string[]) {
    super(url, protocols)
    const counts = new Map<string, number>()
    this.addEventListener('message', ({ data }) => {
      const [, id] = (typeof data === 'string' ? REFUSED.exec(data) : null) ?? []
      if (id === undefined) return
      const count = (counts.get(id) ?? 0) + 1
      counts.set(id, count)
      refusals.push({ atUs: nowUs(), count })
    })
  }
}

const publishers = Array.from({ length: clients }, (_, index): Publisher => {
  const url = urls[index % urls.length] ?? ''
  const client = new library.WebMQClient({ url, WebSocket: CountingWebSocket })
  return { client, key: `overload.${index}`, nextUs: Number.POSITIVE_INFINITY }
})

port.on('message', (command: PublishersCommand) => {
  if (command.type === 'finish') void finish()
  else offer(command.perSecond)
})
await Promise.all(publishers.map(({ client }) => client.connect()))
const publishing = setInterval(publishDue, TICK_MS)
post({ type: 'connected' })

function offer(perSecond: number): void {
  const startUs = nowUs()
  utilizationBefore = performance.eventLoopUtilization()
  intervalUs = (clients * 1_000_000) / perSecond
  for (const publisher of publishers) {
    publisher.nextUs = startUs + Math.random() * intervalUs
    if (intervalUs === 0) void publish(publisher, startUs)
  }
}

/** A late thread catches up, so that the load does not shrink. */
function publishDue(): void {
  if (intervalUs === 0) return
  const endUs = nowUs()
  for (const publisher of publishers) {
    for (; publisher.nextUs <= endUs; publisher.nextUs += intervalUs) void publish(publisher, publisher.nextUs)
  }
}

/** Never rejects. */
async function publish(publisher: Publisher, createdUs: number): Promise<void> {
  const message: PublishRecord = { createdUs, answeredUs: null, failure: null }
  messages.push(message)
  try {
    await publisher.client.publish(publisher.key, payload)
  } catch (error) {
    message.failure = error instanceof library.WebMQError ? error.code : String(error)
  }
  message.answeredUs = nowUs()
  if (intervalUs === 0 && message.failure === null) void publish(publisher, message.answeredUs)
}

async function finish(): Promise<void> {
  clearInterval(publishing)
  intervalUs = Number.POSITIVE_INFINITY
  const { utilization } = performance.eventLoopUtilization(utilizationBefore)
  messages.sort((one, other) => one.createdUs - other.createdUs)
  // Posted, and thereby copied, before the clients are closed: failures by that are not part of the run.
  post({ type: 'log', log: { messages, refusals, utilization } })
  await Promise.all(publishers.map(({ client }) => client.close({ flushMs: 0 })))
  port?.close()
}

function post(event: PublishersEvent): void {
  port?.postMessage(event)
}
