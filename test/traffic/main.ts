import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { playWith } from '../play-options.js'
import type { NodeMemory, TrafficNode } from './node.js'
import { readOptions, type TrafficOptions, USAGE } from './options.js'
import { HONEST_ROWS, TrafficPlay } from './play.js'
import { LOG_BYTES, OutboxDatabase, startSystem, type TrafficSystem } from './system.js'
import { Tally } from './tally.js'

const MIB = 1_048_576
const SECONDS_PER_MINUTE = 60
/** Memory is compared with that after this part of the time: logs and caches are then full. */
const WARM_UP_SHARE = 1 / 4
const MAX_WARM_UP_SECONDS = 300
const LOOK_MS = 1_000
const OUTBOX_SECONDS = 20
/** What a node may use beside its use after the warm-up. A log may be empty then, and full at the end. */
const MAX_USED_GROWTH = 1.25
const USED_MARGIN_BYTES = 16 * MIB + 2 * LOG_BYTES
const MAX_RSS_GROWTH = 1.5
const RSS_MARGIN_BYTES = 64 * MIB + 2 * LOG_BYTES
/** Lines of level error that traffic may cause. */
const EXPECTED_ERRORS: readonly RegExp[] = []

const say = (text: string) => process.stdout.write(`${text}\n`)

/** @returns 1 when something was not as it must be, 2 for options that are none. */
export async function main(args: readonly string[]): Promise<number> {
  return await playWith(args, { usage: USAGE, read: readOptions }, (options) => new Traffic(options).run())
}

class Traffic {
  readonly #options: TrafficOptions
  readonly #tally = new Tally()
  readonly #systems: TrafficSystem[] = []
  readonly #plays: TrafficPlay[] = []
  readonly #dead = new Set<TrafficNode>()
  readonly #warm = new Map<TrafficNode, NodeMemory>()
  #outbox: OutboxDatabase | undefined

  constructor(options: TrafficOptions) {
    this.#options = options
  }

  async run(): Promise<number> {
    const { brokers, seed, seconds, perSecond } = this.#options
    say(`seed ${seed}: ${seconds} s of ${perSecond} actions per second with each of ${brokers.join(', ')}`)
    try {
      await this.#start()
      await this.#play()
      await this.#compare()
    } catch (error) {
      this.#tally.violated(`the play has failed: ${(error as Error).stack ?? error}`)
    } finally {
      await Promise.allSettled(this.#systems.map((system) => system.stop()))
      await this.#outbox?.stop()
    }
    return this.#tell()
  }

  get #nodes(): readonly TrafficNode[] {
    return this.#systems.flatMap(({ nodes }) => nodes)
  }

  async #start(): Promise<void> {
    const { brokers, hasOutbox } = this.#options
    const probe = pathToFileURL(path.join(process.cwd(), 'test/traffic/memory-probe.mjs')).href
    // A log of the nodes alone can lose nothing of a row; that of a broker is what users have.
    const withOutbox = brokers.find((name) => name !== 'memory') ?? brokers[0]
    if (hasOutbox) this.#outbox = await OutboxDatabase.start()
    for (const name of brokers) {
      const outbox = name === withOutbox ? this.#outbox : undefined
      const system = await startSystem(name, probe, outbox === undefined ? [] : ['--outbox', outbox.url])
      this.#systems.push(system)
      this.#plays.push(new TrafficPlay(system, this.#options, this.#tally, outbox))
    }
  }

  async #play(): Promise<void> {
    const { seconds } = this.#options
    const startedAt = Date.now()
    const warmUpSeconds = Math.min(MAX_WARM_UP_SECONDS, seconds * WARM_UP_SHARE)
    for (const play of this.#plays) play.begin()
    let minutes = 0
    for (let elapsed = 0; elapsed < seconds && this.#dead.size < this.#nodes.length; ) {
      await sleep(LOOK_MS)
      elapsed = (Date.now() - startedAt) / 1_000
      this.#look()
      if (this.#warm.size === 0 && elapsed >= warmUpSeconds) await this.#measure(this.#warm)
      if (elapsed < SECONDS_PER_MINUTE * (minutes + 1)) continue
      this.#report(`minute ${++minutes}`)
    }
    await Promise.all(this.#plays.map((play) => play.end()))
    this.#look()
    this.#report('the end of the traffic')
  }

  /** Nodes that have ended, and what nodes say. */
  #look(): void {
    for (const node of this.#nodes) {
      for (const line of node.errors()) {
        if (!EXPECTED_ERRORS.some((expected) => expected.test(line))) this.#tally.violated(`${node.name} logs ${line}`)
      }
      const { death } = node
      if (death === undefined || this.#dead.has(node)) continue
      this.#dead.add(node)
      this.#tally.violated(`${node.name} has ${death}`)
    }
  }

  #report(title: string): void {
    const memory = this.#nodes.map((node) => `${node.name} ${Math.round(node.rssBytes / MIB)} MiB`)
    say(`${title}: RSS ${memory.join(', ')}; ${this.#tally.violationCount} violations`)
    for (const line of this.#tally.take()) say(line)
  }

  async #measure(into: Map<TrafficNode, NodeMemory>): Promise<void> {
    for (const node of this.#nodes) {
      if (node.death !== undefined) continue
      const memory = await node.memory()
      into.set(node, memory)
      say(
        `  ${node.name}: ${Math.round(memory.usedBytes / MIB)} MiB in use, RSS ${Math.round(memory.rssBytes / MIB)} MiB`,
      )
    }
  }

  /** After some time without traffic: nodes answer, rows of the database are gone, and memory is as before. */
  async #compare(): Promise<void> {
    await sleep(this.#options.quietSeconds * 1_000)
    this.#look()
    await this.#awaitRows()
    const quiet = new Map<TrafficNode, NodeMemory>()
    say('after a quiet phase:')
    await this.#measure(quiet)
    for (const [node, { usedBytes, rssBytes }] of quiet) {
      const warm = this.#warm.get(node)
      if (warm !== undefined && usedBytes > warm.usedBytes * MAX_USED_GROWTH + USED_MARGIN_BYTES)
        this.#tally.violated(`${node.name} uses ${usedBytes} bytes, and had used ${warm.usedBytes}`)
      if (warm !== undefined && rssBytes > warm.rssBytes * MAX_RSS_GROWTH + RSS_MARGIN_BYTES)
        this.#tally.violated(`${node.name} has ${rssBytes} bytes of memory, and had ${warm.rssBytes}`)
      const { status } = await node.http('GET', '/ready')
      if (status !== 200) this.#tally.violated(`${node.name} is not ready: ${status}`)
    }
  }

  async #awaitRows(): Promise<void> {
    const deadline = Date.now() + OUTBOX_SECONDS * 1_000
    let waiting = (await this.#outbox?.waiting(HONEST_ROWS)) ?? 0
    while (waiting > 0 && Date.now() < deadline) {
      await sleep(LOOK_MS)
      waiting = (await this.#outbox?.waiting(HONEST_ROWS)) ?? 0
    }
    if (waiting > 0) this.#tally.violated(`${waiting} honest rows of the database are not published`)
  }

  #tell(): number {
    const { violationCount, violations } = this.#tally
    if (violationCount === 0) say(`all is as it must be; seed ${this.#options.seed}`)
    else say([`${violationCount} violations with the seed ${this.#options.seed}:`, ...violations].join('\n  '))
    return violationCount === 0 ? 0 : 1
  }
}
