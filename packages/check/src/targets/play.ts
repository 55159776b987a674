import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from 'webmq-services'
import { Link } from '../playing/link.js'
import { Node } from '../playing/node.js'
import type { Published, TimedEvent, TimedHeard, TimedPlay } from './record.js'
import { LISTENER_COUNT, NODE_COUNT, type Schedule, type Step } from './schedule.js'
import type { NodeOptions, System } from './system.js'

const HOST = '127.0.0.1'
const CHANNELS = ['a', 'b']
const BETWEEN_PUBLISHES_MS = 20
const AFTER_FAILURE_MS = 100
/** After the last fault: for a client that waits longest between two attempts, on a busy machine. */
const MAX_RETURN_MS = 30_000
const MAX_LAST_MS = 10_000
/** A second copy may come after the last message. */
const AFTER_LAST_MS = 300
const POLL_MS = 20

type Place = Omit<NodeOptions, 'port'>

/** Plays a schedule on two nodes of a system. @throws {Error} when a node does not start. */
export async function playOn(system: System, schedule: Schedule, place: Place): Promise<TimedPlay> {
  const stage = await Stage.start(system, schedule, place)
  try {
    return await stage.play(schedule)
  } finally {
    await stage.stop()
  }
}

class Stage {
  readonly #system: System
  /** Those that the play starts; none where the system runs already. */
  readonly #nodes: readonly Node[]
  readonly #places: readonly Reached[]
  readonly #homes = Array.from({ length: LISTENER_COUNT }, (_, listener) => listener % NODE_COUNT)
  readonly #links: Link[] = []
  readonly #clients: { close(): void }[] = []
  readonly #published: TimedPlay['published'][number][] = []
  readonly #heard: (TimedHeard & { readonly events: TimedEvent[] })[] = []
  #beganAtMs = performance.now()
  /** Whether clients of a node that is down are sent to another, as by a load balancer. */
  readonly #isBalanced: boolean
  #isOver = false

  private constructor(system: System, nodes: readonly Node[], isBalanced: boolean) {
    this.#system = system
    this.#nodes = nodes
    this.#places = nodes.length > 0 ? nodes.map(reachedOf) : (system.addresses ?? []).map(reachedAt)
    this.#isBalanced = isBalanced
  }

  static async start(system: System, { theme }: Schedule, place: Place): Promise<Stage> {
    const { nodeProgram } = system
    const ports = await Promise.all(
      Array.from({ length: nodeProgram === undefined ? 0 : NODE_COUNT }, () => freePort()),
    )
    const nodes = ports.flatMap((port, index) => {
      const program = nodeProgram?.({ ...place, port })
      return program === undefined ? [] : [new Node(`node-${index}`, port, program)]
    })
    const stage = new Stage(system, nodes, theme === 'deploy')
    try {
      await Promise.all(nodes.map((node) => node.start()))
      for (let listener = 0; listener < LISTENER_COUNT; listener++) await stage.#listen(listener)
    } catch (error) {
      await stage.stop()
      throw error
    }
    return stage
  }

  async play({ steps, lengthMs }: Schedule): Promise<TimedPlay> {
    this.#beganAtMs = performance.now()
    const publishing = CHANNELS.map((channel, index) => this.#publish(channel, index % NODE_COUNT))
    try {
      await Promise.all([sleep(lengthMs), ...steps.map((step) => this.#take(step))])
      const mended = this.#published.length
      await until(MAX_RETURN_MS, () => this.#haveAll(this.#firstOf(mended)))
    } finally {
      this.#isOver = true
      await Promise.all(publishing)
    }
    await until(MAX_LAST_MS, () => this.#haveAll(this.#lastOf(0)))
    await sleep(AFTER_LAST_MS)
    return { published: this.#published, listeners: this.#heard, endedAtMs: this.#nowMs() }
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close()
    for (const link of this.#links) link.stop()
    await Promise.all(this.#nodes.map((node) => node.kill()))
    const deaths = this.#nodes.flatMap((node) => node.deaths)
    if (deaths.length > 0) throw new Error(`a node has ended by itself:\n${deaths.join('\n')}`)
  }

  async #listen(listener: number): Promise<void> {
    const link = await Link.start(() => this.#targetFor(listener))
    this.#links.push(link)
    const events: TimedEvent[] = []
    this.#heard.push({ name: `listener-${listener}`, events })
    this.#clients.push(
      await this.#system.listen(link.port, CHANNELS, (event) => events.push({ ...event, atMs: this.#nowMs() })),
    )
  }

  #targetFor(listener: number): Reached {
    const home = this.#places[this.#homes[listener] ?? 0]
    const other = this.#places.find((place) => place.isUp())
    const place = this.#isBalanced && home?.isUp() !== true ? (other ?? home) : home
    if (place === undefined) throw new Error('there is no node')
    return place
  }

  readonly #nowMs = (): number => performance.now() - this.#beganAtMs

  async #take(step: Step): Promise<void> {
    await sleep(step.atMs)
    if (step.what === 'kill' || step.what === 'roll') {
      const node = this.#nodes[step.node]
      if (step.what === 'kill') await node?.kill()
      else await node?.stop()
      await sleep(step.forMs)
      await node?.start()
      return
    }
    const { listener, what, moves, forMs } = step
    const link = this.#links[listener]
    link?.break(what === 'cut' ? { fault: what } : { fault: what, streams: ['upstream', 'downstream'] })
    if (moves) this.#homes[listener] = NODE_COUNT - 1 - (this.#homes[listener] ?? 0)
    await sleep(forMs)
    link?.heal()
  }

  /** A publisher stays at a node while it answers. */
  async #publish(channel: string, first: number): Promise<void> {
    let at = first
    for (let number = 1; !this.#isOver; number++) {
      const sentAtMs = this.#nowMs()
      const outcome = await this.#system.publish(this.#places[at]?.origin ?? '', { channel, number })
      this.#published.push({ channel, number, outcome, sentAtMs })
      if (outcome !== 'acked') at = NODE_COUNT - 1 - at
      await sleep(outcome === 'acked' ? BETWEEN_PUBLISHES_MS : AFTER_FAILURE_MS)
    }
  }

  /** The first message of each channel that was acknowledged since `from`; `undefined` where there is none yet. */
  #firstOf(from: number): (Published | undefined)[] {
    const since = this.#published.slice(from)
    return CHANNELS.map((channel) => since.find((each) => each.channel === channel && each.outcome === 'acked'))
  }

  #lastOf(from: number): (Published | undefined)[] {
    const since = this.#published.slice(from)
    return CHANNELS.map((channel) => since.findLast((each) => each.channel === channel && each.outcome === 'acked'))
  }

  /** Whether every listener has these, or later ones. */
  #haveAll(messages: readonly (Published | undefined)[]): boolean {
    return messages.every(
      (message) =>
        message !== undefined &&
        this.#heard.every(({ events }) =>
          events.some(
            (event) => event.what === 'message' && event.channel === message.channel && event.number >= message.number,
          ),
        ),
    )
  }
}

/** Where clients and publishers reach a node. */
interface Reached {
  readonly host: string
  readonly port: number
  readonly origin: string
  readonly isUp: () => boolean
}

function reachedOf(node: Node): Reached {
  return { host: HOST, port: node.port, origin: `http://${HOST}:${node.port}`, isUp: () => node.isUp }
}

function reachedAt(address: string): Reached {
  const { hostname, port } = new URL(address)
  return { host: hostname, port: Number(port), origin: address, isUp: () => true }
}

/** Resolves when it is so, or after that time: then the counts show it. */
async function until(maxMs: number, isSo: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + maxMs
  while (!isSo() && performance.now() < deadlineMs) await sleep(POLL_MS)
}
