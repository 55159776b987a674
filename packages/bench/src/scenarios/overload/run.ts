import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceBrokerKind } from '../../brokers/broker-choice.js'
import { startBroker } from '../../brokers/running-broker.js'
import { ClientThreads } from '../../generator/client-threads.js'
import { nowUs } from '../../measure/clock.js'
import { type Parts, startService, withParts } from '../../parts.js'
import type { RunProgress } from '../../run-progress.js'
import { ServerNode } from '../../server-node.js'
import { idealMs, type Span, spanFigures } from './figures.js'
import type {
  NetworkCommand,
  NetworkData,
  NetworkEvent,
  PublishersCommand,
  PublishersData,
  PublishersEvent,
  PublishLog,
} from './messages.js'
import type { OverloadConfig, OverloadFault } from './options.js'

/** A load, with or without a fault. */
export interface Phase {
  readonly fault: OverloadFault | 'none'
  /** Multiple of the capacity. */
  readonly load: number
  readonly log: PublishLog
  /** Before a fault, or all that is measured. */
  readonly window: Span
  /** With a fault: while it lasts, and from its end until nobody looks any more. */
  readonly broken: Span | null
  readonly after: Span | null
  readonly idealMs: number | null
  /** Share of the time in which the network to the broker was busy, and CPU time of the nodes; of the window. */
  readonly brokerUtilization: number
  readonly nodeCpuSeconds: number
}

export interface OverloadObservation {
  /** Publishes that the broker accepts per second. */
  readonly capacity: number
  /** Of the measurement of the capacity. */
  readonly capacityUtilization: number
  readonly phases: readonly Phase[]
}

const CONNECT_TIMEOUT_MS = 60_000
const REPORT_TIMEOUT_MS = 10_000
/** Ideal times for which a run looks for the end of a fault's consequences, and some time more. */
const PATIENCE = 2
const MORE_PATIENCE_MS = 6_000
const NAMESPACE_BYTES = 6

type Network = ClientThreads<NetworkCommand, NetworkEvent>
type Publishers = ClientThreads<PublishersCommand, PublishersEvent>

/**
 * Measures the capacity of a broker behind a slow network, and plays all loads and faults. No process and no thread of it is
 * left when it settles; a node that stands still is killed.
 * @throws {RunError} when a part did not start, or ended by itself.
 */
export async function observeOverload(
  kind: ServiceBrokerKind,
  config: OverloadConfig,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<OverloadObservation> {
  return await withParts(signal, async (parts) => {
    progress.phase(`starting ${kind}`)
    const broker = await parts.add(() => startBroker({ kind }, config.backends))
    const address = new URL(broker.nodeOptions(0).broker)
    const data: NetworkData = { brokerPort: Number(address.port), bytesPerSecond: config.bytesPerSecond }
    const script = new URL('./slow-network.js', import.meta.url)
    const network: Network = await parts.add(() => new ClientThreads<NetworkCommand, NetworkEvent>(script, [data]))
    const [ready] = await network.next('ready', CONNECT_TIMEOUT_MS)
    address.host = `127.0.0.1:${ready?.port}`
    const nodes = await startNodes(address.href.replace(/\/$/, ''), config, parts)
    return await new OverloadRun({ config, network, nodes, parts, progress }).observe()
  })
}

async function startNodes(brokerUrl: string, config: OverloadConfig, parts: Parts): Promise<ServerNode[]> {
  const namespace = `overload-${randomBytes(NAMESPACE_BYTES).toString('hex')}`
  const flags = ['--broker', brokerUrl, '--broker-namespace', namespace, '--transport', config.transport]
  const indexes = Array.from({ length: config.backends }, (_, index) => index)
  const ports = await startService('the nodes', ({ freePort }) => Promise.all(indexes.map(() => freePort())))
  const create = (port: number, index: number) =>
    new ServerNode(index, port, [...flags, '--log-level', 'warn'], config.root)
  const nodes = await Promise.all(ports.map((port, index) => parts.add(() => create(port, index))))
  await Promise.all(nodes.map((node) => node.start(parts.signal)))
  return nodes
}

interface RunParts {
  readonly config: OverloadConfig
  readonly network: Network
  readonly nodes: readonly ServerNode[]
  readonly parts: Parts
  readonly progress: RunProgress
}

class OverloadRun {
  readonly #context: RunParts

  constructor(context: RunParts) {
    this.#context = context
  }

  async observe(): Promise<OverloadObservation> {
    const { loads, faults, faultLoad } = this.#context.config
    // Each client publishes its next message when the last one is acknowledged, so nothing waits in the nodes.
    const flood = await this.#play('none', Number.POSITIVE_INFINITY, 1)
    // Where the machine has not kept the network busy, its bytes still say what the broker would have taken.
    const capacity = spanFigures(flood.log, flood.window).ackedPerSecond / Math.min(1, flood.brokerUtilization)
    const phases: Phase[] = []
    for (const load of loads) phases.push(await this.#play('none', load, capacity))
    for (const fault of faults) phases.push(await this.#play(fault, faultLoad, capacity))
    return { capacity, capacityUtilization: flood.brokerUtilization, phases }
  }

  /** Clients of its own for each: nothing is left of an earlier overload. */
  async #play(fault: Phase['fault'], load: number, capacity: number): Promise<Phase> {
    const { settleS, windowS, clients, messageSize, root } = this.#context.config
    const name = load === Number.POSITIVE_INFINITY ? 'capacity' : `${load} times the capacity`
    this.#context.progress.phase(fault === 'none' ? name : `${fault} at ${name}`)
    const urls = this.#context.nodes.map(({ port }) => `ws://127.0.0.1:${port}/ws`)
    const data: PublishersData = { urls, clients, messageSize, root }
    const script = new URL('./publishers-worker.js', import.meta.url)
    const publishers: Publishers = await this.#context.parts.add(
      () => new ClientThreads<PublishersCommand, PublishersEvent>(script, [data]),
    )
    await publishers.next('connected', CONNECT_TIMEOUT_MS)
    publishers.post({ type: 'offer', perSecond: load * capacity })
    await this.#sleep(settleS * 1_000)
    const before = await this.#sample()
    await this.#sleep(windowS * 1_000)
    const end = await this.#sample()
    const seconds = (end.atUs - before.atUs) / 1_000_000
    const played = fault === 'none' ? NO_FAULT : await this.#break(fault, load, capacity)
    const [answer] = await publishers.finish({ type: 'finish' }, 'log', REPORT_TIMEOUT_MS)
    await publishers.stop()
    return {
      fault,
      load,
      log: answer?.log ?? NO_LOG,
      window: { startUs: before.atUs, endUs: end.atUs },
      ...played,
      brokerUtilization: (end.carriedBytes - before.carriedBytes) / seconds / this.#context.config.bytesPerSecond,
      nodeCpuSeconds: end.nodeCpuSeconds - before.nodeCpuSeconds,
    }
  }

  async #break(fault: OverloadFault, load: number, capacity: number): Promise<Pick<Phase, keyof typeof NO_FAULT>> {
    const { freezeS, stopS, slowS, slowMs, backends } = this.#context.config
    const [victim] = this.#context.nodes
    const startUs = nowUs()
    if (fault === 'stop') {
      try {
        await victim?.freeze()
        await this.#sleep(stopS * 1_000)
      } finally {
        victim?.thaw()
      }
    } else {
      const isFrozen = fault === 'freeze'
      this.#context.network.post({ type: 'set', isFrozen, delayMs: isFrozen ? 0 : slowMs })
      await this.#sleep((isFrozen ? freezeS : slowS) * 1_000)
      this.#context.network.post({ type: 'set', isFrozen: false, delayMs: 0 })
    }
    const repairedUs = nowUs()
    // Messages that came meanwhile and were not carried.
    const waitedS = { freeze: freezeS, stop: stopS / backends, slow: (2 * slowMs) / 1_000 }[fault]
    const ideal = idealMs(load * capacity * waitedS, capacity, load * capacity)
    await this.#sleep(ideal * PATIENCE + MORE_PATIENCE_MS)
    const broken = { startUs, endUs: repairedUs }
    return { broken, after: { startUs: repairedUs, endUs: nowUs() }, idealMs: ideal }
  }

  async #sample() {
    const carried = this.#context.network.next('carried', REPORT_TIMEOUT_MS)
    this.#context.network.post({ type: 'report' })
    const [event] = await carried
    const nodeCpuSeconds = this.#context.nodes.reduce((sum, node) => sum + node.cpuSeconds(), 0)
    return { atUs: nowUs(), carriedBytes: event?.bytes ?? 0, nodeCpuSeconds }
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#context.parts.signal })
  }
}

const NO_FAULT = { broken: null, after: null, idealMs: null }
const NO_LOG: PublishLog = { messages: [], refusals: [], utilization: 0 }
