import { createServer, type WebMQServer } from 'webmq-server'
import { EventLoopMeter } from '../measure/event-loop-meter.js'
import { summarizeLatency } from '../measure/latency-histogram.js'
import type { BackendCommand, BackendEvent, BackendOptions, BackendSample } from './messages.js'

/** A server under test, in a process of its own. */
const meter = new EventLoopMeter()
let server: WebMQServer | undefined

process.on('message', (command: BackendCommand) => {
  if (command.type === 'start') void start(command.options)
  else send({ type: 'sample', id: command.id, sample: sample() })
})

// The channel closes when the bench ends this process, and when the bench is killed. Either way nothing is left behind.
// Exits at once: the clients have gone, and a clean stop is not measured.
process.on('disconnect', () => process.exit(0))
// Ctrl-C reaches the whole process group; the bench decides when its backends end.
process.on('SIGINT', () => undefined)
// As the server's own command does: clients are told to reconnect, and get time to do so.
process.once('SIGTERM', () => void drain())

async function start(options: BackendOptions): Promise<void> {
  try {
    server = createServer({ host: '127.0.0.1', port: 0, logLevel: 'error', ...options })
    const { url, port } = await server.start()
    send({ type: 'listening', url, port })
  } catch (error) {
    send({ type: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
}

async function drain(): Promise<void> {
  await server?.stop()
  send({ type: 'drained', sample: sample() })
  process.disconnect()
}

function sample(): BackendSample {
  const { user, system } = process.cpuUsage()
  const eventLoopLagMs = summarizeLatency(meter.lag)
  meter.reset()
  return {
    cpuSeconds: (user + system) / 1_000_000,
    rssBytes: process.memoryUsage.rss(),
    peakRssBytes: process.resourceUsage().maxRSS * 1_024,
    eventLoopLagMs,
  }
}

function send(event: BackendEvent): void {
  process.send?.(event)
}
