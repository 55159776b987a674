import { setTimeout as sleep } from 'node:timers/promises'
import { matches } from 'webmq-client/protocol'
import { examine, type Findings, type LogFacts } from './examine.js'
import { type Diary, Listener } from './listener.js'
import { type Payload, Publisher } from './publisher.js'
import { KEYS, type Schedule, type Step } from './schedule.js'
import type { TestSystem } from './system.js'

/** What is known about a run, and its bounds. */
export interface RunLimits extends LogFacts {
  /** Messages of one publisher, but for the last of every key. */
  readonly maxMessages: number
  /** Time for everything to be as before, when the last fault is over. */
  readonly settleTimeoutMs: number
  /** Clients come back to the node that they were on, whatever the schedule says. */
  readonly clientsStay?: boolean
}

/** What a run has found, and how often each kind of step was taken. */
export interface RunReport extends Findings {
  readonly stepCounts: Map<string, number>
}

/** A step waits no longer than this for the messages that are to be published before it. */
const MAX_WAIT_MS = 1_000
const POLL_MS = 2
/** Within which the last messages come, or are published again. */
const LAST_TIMEOUT_MS = 1_000
/** For which a client reads nothing. */
const STALL_MS = 20

let runCount = 0

/**
 * Runs a schedule: publishers publish at full speed while one step after the other is taken; then everything is made whole, every
 * publisher publishes once more to every key, and what each subscription was told is examined.
 */
export async function runSchedule(system: TestSystem, schedule: Schedule, limits: RunLimits): Promise<RunReport> {
  const run = new Run(system, schedule, limits, `r${process.pid}x${++runCount}`)
  try {
    return await run.execute()
  } finally {
    await run.stop()
  }
}

class Run {
  readonly #system: TestSystem
  readonly #schedule: Schedule
  readonly #limits: RunLimits
  readonly #prefix: string
  readonly #publishers: Publisher[] = []
  readonly #listeners: Listener[] = []
  /** Nodes that publishers and clients want, which may be down. */
  readonly #publisherNodes: number[] = []
  readonly #clientNodes: number[] = []
  readonly #stepCounts = new Map<string, number>()

  constructor(system: TestSystem, schedule: Schedule, limits: RunLimits, prefix: string) {
    this.#system = system
    this.#schedule = schedule
    this.#limits = limits
    this.#prefix = prefix
  }

  async execute(): Promise<RunReport> {
    const { publishers, clients, steps } = this.#schedule
    const keys = KEYS.map((key) => `${this.#prefix}.${key}`)
    for (const [index, { node, mode }] of publishers.entries()) {
      this.#publisherNodes.push(node)
      const targets = [() => this.#port(this.#publisherNodes[index])]
      if (mode === 'twice') targets.push(() => this.#port((this.#publisherNodes[index] ?? 0) + 1))
      this.#publishers.push(await Publisher.start(index, keys, targets, this.#limits.maxMessages))
    }
    for (const [index, { node, listens }] of clients.entries()) {
      this.#clientNodes.push(node)
      const listener = await Listener.start(() => this.#port(this.#clientNodes[index]))
      this.#listeners.push(listener)
      for (const { pattern, start } of listens) listener.listen(`${this.#prefix}.${pattern}`, start)
    }
    for (const publisher of this.#publishers) publisher.begin()
    for (const step of steps) {
      await this.#published(step.after)
      await this.#take(step)
    }
    await Promise.all(this.#publishers.map((publisher) => publisher.pause()))
    const stuck = await this.#settle(keys)
    const findings = examine(
      this.#publishers.map(({ published }) => published),
      this.#diaries,
      this.#limits,
    )
    findings.violations.unshift(...stuck)
    return { ...findings, stepCounts: this.#stepCounts }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#publishers, ...this.#listeners].map((participant) => participant.stop()))
  }

  get #diaries(): Diary[] {
    return this.#listeners.flatMap(({ diaries }) => diaries)
  }

  #port(node = 0): number | undefined {
    const { nodes } = this.#system
    // Whoever wants a node that is down gets the next one, as from a load balancer.
    for (let step = 0; step < nodes.length; step++) {
      const port = nodes[(node + step) % nodes.length]?.port
      if (port !== undefined) return port
    }
    return undefined
  }

  get #publishedCount(): number {
    return this.#publishers.reduce((sum, { published }) => sum + published.length, 0)
  }

  /** Waits until `count` more messages were published; at a node that is away that takes no longer than a bound. */
  async #published(count: number): Promise<void> {
    const [goal, deadline] = [this.#publishedCount + count, performance.now() + MAX_WAIT_MS]
    const isFull = () => this.#publishers.every(({ isFull }) => isFull)
    while (this.#publishedCount < goal && performance.now() < deadline && !isFull()) await sleep(1)
  }

  async #take(step: Step): Promise<void> {
    this.#stepCounts.set(step.kind, (this.#stepCounts.get(step.kind) ?? 0) + 1)
    switch (step.kind) {
      case 'move-publisher': {
        const index = step.publisher % this.#publishers.length
        this.#publisherNodes[index] = step.node
        this.#publishers[index]?.cut()
        return
      }
      case 'restart-node':
      case 'crash-node': {
        const node = this.#system.nodes[step.node % this.#system.nodes.length]
        await (step.kind === 'crash-node' && node?.crash ? node.crash() : node?.stop())
        await node?.start()
        return
      }
      case 'break-broker': {
        const fault = this.#system.faults[step.fault % this.#system.faults.length]
        if (fault === undefined) return
        const name = `broker: ${fault.name}`
        this.#stepCounts.set(name, (this.#stepCounts.get(name) ?? 0) + 1)
        await fault.inject()
        await sleep(fault.holdMs)
        await fault.end()
        return
      }
    }
    const index = step.client % this.#listeners.length
    const listener = this.#listeners[index]
    if (listener === undefined) return
    switch (step.kind) {
      case 'stall':
        listener.inflict('stall')
        await sleep(STALL_MS)
        listener.resume()
        return
      case 'switch':
        this.#move(index, step.node)
        listener.inflict('cut')
        return
      case 'renew':
        this.#move(index, step.node)
        await listener.renew()
        return
      case 'listen':
        listener.listen(`${this.#prefix}.${step.listen.pattern}`, step.listen.start)
        return
      default:
        listener.inflict(step.kind)
    }
  }

  #move(client: number, node: number): void {
    if (this.#limits.clientsStay !== true) this.#clientNodes[client] = node
  }

  /** Waits until everybody is live and gets what is published to every key; returns what does not come. */
  async #settle(keys: readonly string[]): Promise<string[]> {
    const deadline = performance.now() + this.#limits.settleTimeoutMs
    const isOver = () => performance.now() >= deadline
    let missing: string[] = []
    do {
      while (!this.#listeners.every(({ isLive }) => isLive)) {
        if (isOver()) return ['a subscription did not become live']
        await sleep(POLL_MS)
      }
      // Once is not enough: somebody may not have noticed yet that its connection is gone.
      missing = await this.#publishLast(keys, Math.min(deadline, performance.now() + LAST_TIMEOUT_MS))
    } while (missing.length > 0 && !isOver())
    return missing
  }

  /** Every publisher publishes to every key; returns what has not come to a subscription in time. */
  async #publishLast(keys: readonly string[], deadlineMs: number): Promise<string[]> {
    const last: { readonly payload: Payload; readonly key: string }[] = []
    for (const [publisher, { published }] of this.#publishers.entries()) {
      for (const key of keys) {
        const number = published.length
        const { outcome } = (await this.#publishers[publisher]?.publish(key)) ?? {}
        if (outcome !== 'accepted') return [`${key} of publisher ${publisher} was not accepted`]
        last.push({ key, payload: { publisher, number } })
      }
    }
    const missing = () =>
      this.#diaries.flatMap(({ pattern, entries }, subscription) =>
        last
          .filter(({ key }) => matches(pattern, key))
          .filter(({ payload }) => !entries.some((entry) => entry.what === 'message' && isSame(entry.payload, payload)))
          .map(
            ({ key, payload }) =>
              `subscription ${subscription} never got ${key} ${payload.publisher}/${payload.number}`,
          ),
      )
    while (missing().length > 0 && performance.now() < deadlineMs) await sleep(POLL_MS)
    return missing()
  }
}

function isSame(first: Payload, second: Payload): boolean {
  return first.publisher === second.publisher && first.number === second.number
}
