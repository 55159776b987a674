import { randomBytes } from 'node:crypto'
import type { BalancerName } from 'webmq-services'
import { type Parts, startBalancer, startService, withParts } from '../../parts.js'
import type { RunProgress } from '../../run-progress.js'
import { ServerNode } from '../../server-node.js'
import { Crowd } from './crowd.js'
import { type FleetBrokerKind, startDurableBroker } from './durable-broker.js'
import { LOGGED_PATTERN } from './messages.js'
import type { FleetObservation } from './observation.js'
import type { FleetConfig } from './options.js'
import { FleetRun } from './run.js'

/** Messages of the log: more than arise while anything is broken. */
const HISTORY_RULE = `${LOGGED_PATTERN}=10000`
/** Longer than two checks of the load balancer. */
const DRAIN_DELAY_MS = 600
const NAMESPACE_BYTES = 6

export interface FleetContext {
  readonly config: FleetConfig
  readonly balancer: BalancerName
  readonly progress: RunProgress
  readonly signal: AbortSignal
}

/**
 * Starts a broker, nodes, a load balancer and clients, and plays all faults. When it settles, no process and no thread
 * of it is left; a node that stands still is killed.
 * @throws {RunError} when a part did not start, ended by itself, or did not come back.
 */
export async function observeFleet(kind: FleetBrokerKind, context: FleetContext): Promise<FleetObservation> {
  const { config, balancer: program, progress, signal } = context
  return await withParts(signal, async (parts) => {
    progress.phase(`starting ${kind}`)
    const broker = await startDurableBroker(kind, parts)
    progress.phase('starting nodes')
    const nodes = await createNodes(config, broker.network.url, parts)
    await Promise.all(nodes.map((node) => node.start(parts.signal)))
    const balancer = await parts.add(() =>
      startBalancer(
        nodes.map(({ port }) => port),
        program,
      ),
    )
    const plan = {
      ...config,
      url: `ws://${balancer.host}:${balancer.port}/ws`,
      payloadBytes: config.messageSize,
      rampMs: config.ramp * 1_000,
      workerCount: config.workers,
      heartbeatTimeoutMs: config.pingTimeout * 1_000,
    }
    const clients = await parts.add(() => new Crowd(plan))
    return await new FleetRun(config, { broker, nodes, balancer, clients }, progress, parts.signal).observe()
  })
}

async function createNodes(config: FleetConfig, brokerUrl: string, parts: Parts): Promise<ServerNode[]> {
  const flags = [
    ...['--broker', brokerUrl, '--broker-namespace', `fleet-${randomBytes(NAMESPACE_BYTES).toString('hex')}`],
    // Clients of this machine, whom the load balancer passes on.
    ...['--trusted-proxy', 'loopback'],
    ...['--history', HISTORY_RULE, '--transport', config.transport, '--log-level', 'warn'],
    ...['--ping-interval', `${config.pingInterval * 1_000}ms`, '--ping-timeout', `${config.pingTimeout * 1_000}ms`],
    ...['--drain-delay', `${DRAIN_DELAY_MS}ms`, '--drain-per-second', String(config.drainPerSecond)],
  ]
  const indexes = Array.from({ length: config.backends }, (_, index) => index)
  const ports = await startService('a fleet', ({ freePort }) => Promise.all(indexes.map(() => freePort())))
  return await Promise.all(ports.map((port, index) => parts.add(() => new ServerNode(index, port, flags))))
}
