import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventLoopMeter } from '../measure/event-loop-meter.js'
import type {
  KeysPublished,
  Published,
  TargetCommand,
  TargetListening,
  TargetSample,
  TargetSettings,
} from './messages.js'
import { Publisher } from './publisher.js'
import type { TargetServer } from './target-server.js'

/** Time for V8's threads to sweep after a garbage collection. */
const SWEEP_MS = 200

/** The settings of this script, from the bench. */
export function targetSettings(): TargetSettings {
  return JSON.parse(process.argv[2] ?? '{}')
}

/** Answers the bench until `quit` or until it has gone; then the process ends. */
export function serveTarget(server: TargetServer): void {
  const meter = targetSettings().isUnwatched === true ? undefined : new EventLoopMeter()
  const publisher = new Publisher(server)
  createInterface({ input: process.stdin })
    .on('line', (line) => {
      answer(JSON.parse(line) as TargetCommand, { server, meter, publisher }).then(write, (error: unknown) =>
        write({ event: 'error', message: error instanceof Error ? error.message : String(error) }),
      )
    })
    // Exits at once: the connections are the bench's, and a clean stop is not measured.
    .on('close', () => process.exit(0))
  write({ event: 'listening', port: server.port, pid: process.pid, version: server.version } satisfies TargetListening)
}

interface TargetContext {
  readonly server: TargetServer
  readonly meter: EventLoopMeter | undefined
  readonly publisher: Publisher
}

async function answer(
  command: TargetCommand,
  { server, meter, publisher }: TargetContext,
): Promise<Published | KeysPublished | TargetSample | { readonly event: 'collected' }> {
  switch (command.cmd) {
    case 'publish-flood':
      return await publisher.flood(command)
    case 'publish-relayed':
      return await publisher.relayed(command)
    case 'publish-paced':
      return await publisher.paced(command)
    case 'publish-keys':
      return await publisher.keys(command)
    case 'collect':
      // Twice: the second collection returns the pages that the first has emptied.
      globalThis.gc?.()
      await sleep(SWEEP_MS)
      globalThis.gc?.()
      return { event: 'collected' }
    case 'sample':
      return sample(server, meter)
    case 'quit':
      process.exit(0)
  }
}

function sample(server: TargetServer, meter: EventLoopMeter | undefined): TargetSample {
  const { user, system } = process.cpuUsage()
  const lag = meter?.lag
  const eventLoopLagUs =
    lag === undefined || lag.count === 0
      ? null
      : { p50: lag.percentile(50), p95: lag.percentile(95), p99: lag.percentile(99), max: lag.max }
  meter?.reset()
  return {
    event: 'sample',
    cpuUserUs: user,
    cpuSystemUs: system,
    rssBytes: process.memoryUsage.rss(),
    peakRssBytes: process.resourceUsage().maxRSS * 1_024,
    eventLoopLagUs,
    receivedCount: server.receivedCount(),
    ...(server.refusedCount && { refusedCount: server.refusedCount() }),
    connections: server.connectionCount(),
  }
}

function write(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}
