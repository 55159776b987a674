import { randomBytes } from 'node:crypto'
import type { LoadBalancer } from 'webmq-services'
import { RunError } from '../../exit-codes.js'
import { importBeside } from '../../missing-package.js'
import type { RunProgress } from '../../run-progress.js'
import { Crowd } from './crowd.js'
import { type DurableBroker, type FleetBrokerKind, startDurableBroker } from './durable-broker.js'
import { LOGGED_PATTERN } from './messages.js'
import type { FleetObservation } from './observation.js'
import type { FleetConfig } from './options.js'
import { FleetRun } from './run.js'
import { ServerNode } from './server-node.js'

/** Messages of the log: more than arise while anything is broken. */
const HISTORY_RULE = `${LOGGED_PATTERN}=10000`
/** Longer than two checks of the load balancer. */
const DRAIN_DELAY_MS = 600
const NAMESPACE_BYTES = 6

/** The environment of a run, beside its broker. */
export interface FleetContext {
  readonly config: FleetConfig
  readonly progress: RunProgress
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal
}

/**
 * Starts a broker, nodes, a load balancer and clients, and plays all faults. When it settles, no process and no thread
 * of it is left; a node that stands still is killed.
 * @throws {RunError} when a part did not start, ended by itself, or did not come back.
 */
export async function observeFleet(kind: FleetBrokerKind, context: FleetContext): Promise<FleetObservation> {
  const { config, progress, signal } = context
  signal.throwIfAborted()
  const stopping = new AbortController()
  const abort = () => stopping.abort(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const aborted = new Promise<never>((_, reject) => {
    stopping.signal.addEventListener('abort', () => reject(stopping.signal.reason), { once: true })
  })
  aborted.catch(() => undefined) // The races below may be over before.
  const started: Started = { nodes: [] }
  const orAborted = async <T>(work: Promise<T>): Promise<T> => await Promise.race([aborted, work])
  try {
    progress.phase(`starting ${kind}`)
    started.broker = startDurableBroker(kind)
    const broker = await orAborted(started.broker)
    progress.phase('starting nodes')
    started.nodes = await orAborted(createNodes(config, broker.network.url))
    const { nodes } = started
    await orAborted(Promise.all(nodes.map((node) => node.start(stopping.signal))))
    started.balancer = startBalancer(nodes.map(({ port }) => port))
    const balancer = await orAborted(started.balancer)
    const clients = new Crowd({
      ...config,
      url: `ws://${balancer.host}:${balancer.port}/ws`,
      payloadBytes: config.messageSize,
      rampMs: config.ramp * 1_000,
      workerCount: config.workers,
      heartbeatTimeoutMs: config.pingTimeout * 1_000,
    })
    started.clients = clients
    const run = new FleetRun(config, { broker, nodes, balancer, clients }, progress, stopping.signal)
    return await orAborted(Promise.race([clients.failed, ...nodes.map(({ failed }) => failed), run.observe()]))
  } finally {
    signal.removeEventListener('abort', abort)
    stopping.abort()
    await stopAll(started)
  }
}

/** What was started so far. */
interface Started {
  broker?: Promise<DurableBroker>
  nodes: readonly ServerNode[]
  balancer?: Promise<LoadBalancer>
  clients?: Crowd
}

async function stopAll({ broker, nodes, balancer, clients }: Started): Promise<void> {
  await clients?.stop()
  await Promise.all(nodes.map((node) => node.kill()))
  // A process that did not start left nothing behind, and the run has failed because of it.
  const startedBalancer = await balancer?.catch(() => undefined)
  await startedBalancer?.stop()
  const startedBroker = await broker?.catch(() => undefined)
  await startedBroker?.stop()
}

async function createNodes(config: FleetConfig, brokerUrl: string): Promise<ServerNode[]> {
  const { freePort } = await importBeside(() => import('webmq-services'), 'a fleet')
  const flags = [
    ...['--broker', brokerUrl, '--broker-namespace', `fleet-${randomBytes(NAMESPACE_BYTES).toString('hex')}`],
    ...['--history', HISTORY_RULE, '--transport', config.transport, '--log-level', 'warn'],
    ...['--ping-interval', `${config.pingInterval * 1_000}ms`, '--ping-timeout', `${config.pingTimeout * 1_000}ms`],
    ...['--drain-delay', `${DRAIN_DELAY_MS}ms`, '--drain-per-second', String(config.drainPerSecond)],
  ]
  const ports = await Promise.all(Array.from({ length: config.backends }, () => freePort()))
  return ports.map((port, index) => new ServerNode(index, port, flags))
}

/** @throws {RunError} when HAProxy is not available, or does not start. */
async function startBalancer(ports: readonly number[]): Promise<LoadBalancer> {
  const { startLoadBalancer } = await importBeside(() => import('webmq-services'), 'a fleet')
  try {
    return await startLoadBalancer({ ports })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RunError(`the load balancer could not be started: ${reason}`, { cause })
  }
}
