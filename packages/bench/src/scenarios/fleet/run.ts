import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadBalancer } from 'webmq-services'
import { RunError } from '../../exit-codes.js'
import { nowUs } from '../../measure/clock.js'
import type { RunProgress } from '../../run-progress.js'
import type { ServerNode } from '../../server-node.js'
import type { Crowd } from './crowd.js'
import type { DurableBroker } from './durable-broker.js'
import { FAULTS, type Fault, type FaultContext, type FaultName } from './faults.js'
import type { FaultWindow, FleetObservation, UsageSample } from './observation.js'
import type { FleetConfig } from './options.js'

const POLL_MS = 25
/** To find the processes of a broker costs 10 ms of CPU on a machine with 150 processes. */
const USAGE_INTERVAL_MS = 1_000
/** Clients that are not connected again by then never will be. */
const RECOVERY_TIMEOUT_MS = 45_000
/** After the last message: arrivals have ended when nothing comes for so long. */
const QUIET_MS = 1_000
/** A message that waits for longer has not recovered. */
const PENDING_MS = 500

export interface FleetParts {
  readonly broker: DurableBroker
  readonly nodes: readonly ServerNode[]
  readonly balancer: LoadBalancer
  readonly clients: Crowd
}

/** The course of one run, from the first user to the last message. */
export class FleetRun {
  readonly #config: FleetConfig
  readonly #parts: FleetParts
  readonly #progress: RunProgress
  readonly #signal: AbortSignal
  readonly #startUs = nowUs()
  readonly #usage: UsageSample[] = []

  constructor(config: FleetConfig, parts: FleetParts, progress: RunProgress, signal: AbortSignal) {
    this.#config = config
    this.#parts = parts
    this.#progress = progress
    this.#signal = signal
  }

  /** @throws {RunError} when a node or a client does not come back. */
  async observe(): Promise<FleetObservation> {
    const { ramp, steady, faults, rest } = this.#config
    const { clients, nodes } = this.#parts
    const sampling = setInterval(() => this.#sample(), USAGE_INTERVAL_MS)
    try {
      this.#sample()
      this.#progress.phase('users come')
      await this.#until('all users listen', ramp * 1_000 + RECOVERY_TIMEOUT_MS, () => this.#missingCount === 0)
      this.#progress.phase('steady')
      await this.#sleep(steady * 1_000)
      const begun: Omit<FaultWindow, 'endUs'>[] = [
        { fault: 'none', startUs: this.#startUs, repairedUs: this.#startUs, breaks: null, brokenNodes: [] },
      ]
      for (const name of faults) {
        begun.push(await this.#play(name))
        this.#progress.phase(`${name}: over`)
        await this.#sleep(rest * 1_000)
      }
      await this.#drain()
      const endUs = nowUs()
      this.#sample()
      const windows = begun.map((window, index) => ({ ...window, endUs: begun[index + 1]?.startUs ?? endUs }))
      return {
        startUs: this.#startUs,
        endUs,
        log: await clients.finish(),
        windows,
        nodeNames: nodes.map(({ names }) => names),
        usage: this.#usage,
      }
    } finally {
      clearInterval(sampling)
    }
  }

  async #play(name: FaultName): Promise<Omit<FaultWindow, 'endUs'>> {
    const { nodes, broker, clients } = this.#parts
    const fault: Fault = FAULTS[name]
    const { breaks } = fault
    const victim = this.#victim()
    const broken = { 'all-nodes': nodes, 'one-node': [victim], broker: [] }[breaks]
    const brokenNodes = broken.map(nameOf)
    this.#progress.phase(name)
    const context: FaultContext = {
      nodes,
      victim,
      broker,
      signal: this.#signal,
      downMs: this.#config.down * 1_000,
      sleep: (ms) => this.#sleep(ms),
      deserted: (node) => {
        const isLeft = () => (clients.status.connections[nameOf(node)] ?? 0) === 0
        return this.#until(`all clients leave node ${node.index + 1}`, RECOVERY_TIMEOUT_MS, isLeft)
      },
      connected: () => this.#connected(name),
    }
    const startUs = nowUs()
    await fault.play(context)
    const repairedUs = nowUs()
    await this.#connected(name)
    const isCaughtUp = () => clients.status.oldestPendingMs < PENDING_MS
    await this.#until(`publishes are accepted after '${name}'`, RECOVERY_TIMEOUT_MS, isCaughtUp)
    return { fault: name, startUs, repairedUs, breaks, brokenNodes }
  }

  /** The node with the most publishers, so that a fault of one node hits users and publishers. */
  #victim(): ServerNode {
    const { nodes, clients } = this.#parts
    const { publisherConnections } = clients.status
    const countOf = (node: ServerNode) => publisherConnections[nameOf(node)] ?? 0
    const [victim] = nodes.toSorted((one, other) => countOf(other) - countOf(one))
    if (victim === undefined) throw new Error('there is no node')
    return victim
  }

  /** Publishes no more, and waits for the last messages. A message that is missing then is lost. */
  async #drain(): Promise<void> {
    const { clients } = this.#parts
    this.#progress.phase('last messages')
    clients.quiesce()
    await this.#until('all publishes are accepted', RECOVERY_TIMEOUT_MS, () => clients.status.pendingCount === 0)
    let seenCount = -1
    while (clients.status.deliveredCount !== seenCount) {
      seenCount = clients.status.deliveredCount
      await this.#sleep(QUIET_MS)
    }
  }

  async #connected(fault: string): Promise<void> {
    // The status comes ten times per second; one from before the fault is no answer.
    await this.#sleep(QUIET_MS / 4)
    const isComplete = () => this.#connectedCount === this.#clientCount
    await this.#until(`all clients are connected after '${fault}'`, RECOVERY_TIMEOUT_MS, isComplete)
  }

  get #clientCount(): number {
    return this.#config.users + this.#config.publishers
  }

  get #connectedCount(): number {
    return Object.values(this.#parts.clients.status.connections).reduce((sum, count) => sum + count, 0)
  }

  get #missingCount(): number {
    return this.#clientCount - this.#parts.clients.status.readyCount
  }

  /** @throws {RunError} when it is not so in time. */
  async #until(what: string, timeoutMs: number, isSo: () => boolean): Promise<void> {
    const deadlineUs = nowUs() + timeoutMs * 1_000
    while (!isSo()) {
      if (nowUs() > deadlineUs)
        throw new RunError(`waited ${timeoutMs / 1_000} s in vain until ${what}: ${this.#state()}`)
      await sleep(POLL_MS, undefined, { signal: this.#signal })
    }
  }

  #state(): string {
    const { readyCount, oldestPendingMs, trouble } = this.#parts.clients.status
    return [
      `${this.#connectedCount} of ${this.#clientCount} clients are connected, ${readyCount} have been`,
      `the oldest publish waits for ${Math.round(oldestPendingMs)} ms`,
      ...(trouble === null ? [] : [trouble]),
    ].join('; ')
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#signal })
  }

  #sample(): void {
    const { nodes, broker, balancer } = this.#parts
    const { user, system } = process.cpuUsage()
    this.#usage.push({
      atUs: nowUs(),
      nodes: nodes.reduce((sum, node) => sum + node.cpuSeconds(), 0),
      broker: broker.service.cpuSeconds() ?? null,
      balancer: balancer.cpuSeconds() ?? null,
      clients: (user + system) / 1_000_000,
    })
  }
}

/** As it called itself after its last start. */
function nameOf({ names }: ServerNode): string {
  return names.at(-1) ?? ''
}
