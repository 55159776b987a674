import { readdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { freePort } from 'webmq-services'
import { type ChurnBroker, START } from '../churn/brokers.js'
import { differences, look, textOf } from '../churn/look.js'
import { playWith } from '../play-options.js'
import { TrafficNode } from '../traffic/node.js'
import { Listener, Publisher } from './clients.js'
import { type DeploysOptions, readOptions, USAGE } from './options.js'

const MIB = 1_048_576
const KIB = 1_024
const CAPACITY_MS = 6_000
/** Until the log is full. */
const FILL_MS = 2_000
const MAX_FILLS = 60
const MAX_LOG_BYTES = '200000000'
const WARM_UP_MS = 3_000
/** Between two nodes of a deploy: the clients of the one are back. */
const BETWEEN_MS = 3_000
const SETTLE_MS = 30_000
const POLL_MS = 50
const FLAGS = [
  ...['--log-level', 'info', '--log-format', 'json', '--drain-timeout', '5s', '--dedupe-window', '10s'],
  // One machine is all clients: their budgets are not what is tried.
  ...['--work-per-second', '100000000', '--work-burst', '100000000', '--max-connections-per-address', '100000'],
]

const say = (text: string) => process.stdout.write(`${text}\n`)

/** @returns 1 when something is lost, doubled or left, 2 for options that are none. */
export async function main(args: readonly string[]): Promise<number> {
  return await playWith(args, { usage: USAGE, read: readOptions }, async (options) => {
    const faults: string[] = []
    for (const name of options.brokers) faults.push(...(await play(name, options)))
    say(faults.length === 0 ? 'nothing is lost, doubled or left' : `${faults.length} faults:\n  ${faults.join('\n  ')}`)
    return faults.length === 0 ? 0 : 1
  })
}

/** The nodes of one broker, each of which is replaced again and again. */
class Fleet {
  readonly nodes: TrafficNode[] = []
  readonly #broker: ChurnBroker
  readonly #flags: readonly string[]
  readonly #ports: number[] = []
  readonly #probe = pathToFileURL(path.join(process.cwd(), 'test/traffic/memory-probe.mjs')).href

  constructor(broker: ChurnBroker, logMessages: number) {
    this.#broker = broker
    const [most, rule] = [String(logMessages), `deploys.#=${logMessages}`]
    const log = ['--history', rule, '--history-max-messages', most, '--history-max-bytes', MAX_LOG_BYTES]
    this.#flags = [...FLAGS, ...log]
  }

  async start(): Promise<void> {
    for (let index = 0; index < this.#broker.nodeCount; index++) {
      this.#ports.push(await freePort())
      this.nodes.push(await this.#startNode(index))
    }
  }

  get urls(): string[] {
    return this.nodes.map(({ url }) => url)
  }

  async replaceAll(): Promise<void> {
    for (const index of this.nodes.keys()) {
      await this.nodes[index]?.stop()
      this.nodes[index] = await this.#startNode(index)
      await sleep(BETWEEN_MS)
    }
  }

  /** Of each node: RSS, descriptors and bytes that it has logged in this life. */
  text(): string {
    const texts = this.nodes.map(({ rssBytes, pid, loggedBytes }) => {
      const descriptors = readdirSync(`/proc/${pid}/fd`).length
      return `${(rssBytes / MIB).toFixed(0)} MiB ${descriptors} descriptors ${(loggedBytes / KIB).toFixed(0)} KiB of log`
    })
    return texts.join(', ')
  }

  #startNode(index: number): Promise<TrafficNode> {
    const flags = [...this.#flags, ...this.#broker.flagsOf(index)]
    return TrafficNode.start(`node ${index + 1}`, this.#ports[index] ?? 0, flags, this.#probe)
  }
}

/** @returns What is wrong. */
async function play(name: DeploysOptions['brokers'][number], options: DeploysOptions): Promise<string[]> {
  const broker = await START[name]()
  const { publisherCount, listenerCount, seconds, everySeconds, restSeconds, share, logMessages } = options
  const fleet = new Fleet(broker, logMessages)
  try {
    await fleet.start()
    const publishers = Array.from({ length: publisherCount }, (_, index) => new Publisher(fleet.urls, index))
    const listeners = Array.from({ length: listenerCount }, (_, index) => new Listener(fleet.urls, index))
    await Promise.all(listeners.map((listener) => listener.listen()))
    const acceptedCount = () => publishers.reduce((sum, publisher) => sum + publisher.acceptedCount, 0)
    const flood = async (ms: number) => {
      const was = acceptedCount()
      const beganMs = performance.now()
      await Promise.all(publishers.map((publisher) => publisher.flood(beganMs + ms)))
      return ((acceptedCount() - was) / (performance.now() - beganMs)) * 1_000
    }
    await flood(WARM_UP_MS)
    const capacity = await flood(CAPACITY_MS)
    const rate = capacity * share
    say(`${name}: ${capacity.toFixed(0)} messages per second get through; ${rate.toFixed(0)} from now on`)
    // What a node keeps grows no more.
    for (let fills = 0; acceptedCount() < logMessages && fills < MAX_FILLS; fills++) await flood(FILL_MS)
    await sleep(restSeconds * 1_000)
    const before = await look(broker, fleet.nodes)
    say(`${name}, before: ${textOf(before)}`)
    const endMs = performance.now() + seconds * 1_000
    const load = Promise.all(publishers.map((publisher) => publisher.steady(rate / publisherCount, endMs)))
    for (let number = 1; performance.now() + everySeconds * 1_000 < endMs; number++) {
      await sleep(everySeconds * 1_000)
      say(`${name}, before deploy ${number}: ${fleet.text()}`)
      await fleet.replaceAll()
    }
    await load
    say(`${name}, at the end: ${fleet.text()}`)
    const isSettled = await Promise.all(publishers.map((publisher) => publisher.settled(SETTLE_MS)))
    const faults = isSettled.every(Boolean) ? [] : [`${name}: publishes have no answer`]
    faults.push(...(await judge(name, publishers, listeners)))
    await sleep(restSeconds * 1_000)
    const after = await look(broker, fleet.nodes)
    await Promise.all([...publishers, ...listeners].map((client) => client.close()))
    say(`${name}, after: ${textOf(after)}`)
    faults.push(...differences(name, before, after))
    for (const node of fleet.nodes) faults.push(...node.errors().map((line) => `${node.name} logs ${line}`))
    return faults
  } finally {
    await Promise.allSettled(fleet.nodes.map((node) => node.stop()))
    await broker.stop()
  }
}

async function judge(
  name: string,
  publishers: readonly Publisher[],
  listeners: readonly Listener[],
): Promise<readonly string[]> {
  const endMs = performance.now() + SETTLE_MS
  const lostBy = () => listeners.map((listener) => listener.lost(publishers))
  while (lostBy().some((count) => count > 0) && performance.now() < endMs) await sleep(POLL_MS)
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
  const lost = sum(lostBy())
  const doubled = sum(listeners.map(({ doubledCount }) => doubledCount))
  const late = sum(listeners.map(({ lateCount }) => lateCount))
  const gaps = listeners.flatMap((listener) => listener.gaps.map(({ reason }) => reason))
  const errors = publishers.flatMap((publisher) => publisher.errors)
  const heldBack = sum(publishers.map(({ heldBackCount }) => heldBackCount))
  const accepted = sum(publishers.map(({ acceptedCount }) => acceptedCount))
  say(
    `${name}: ${accepted} accepted, ${sum(listeners.map(({ count }) => count))} delivered, ${lost} lost, ${doubled} doubled, ` +
      `${late} out of order, ${gaps.length} gaps, ${errors.length} publishes failed, ${heldBack} not offered`,
  )
  for (const text of new Set([...gaps, ...errors].slice(0, 5))) say(`  ${text}`)
  const faults: string[] = []
  // A mesh has no log that nodes share: who comes back to another node is told a gap.
  if (lost > 0 && (gaps.length === 0 || name !== 'mesh')) faults.push(`${name}: ${lost} messages are lost`)
  if (gaps.length > 0 && name !== 'mesh')
    faults.push(`${name}: ${gaps.length} gaps, ${[...new Set(gaps)].join(' and ')}`)
  if (doubled > 0) faults.push(`${name}: ${doubled} messages came twice`)
  if (late > 0) faults.push(`${name}: ${late} messages came out of order`)
  return faults
}
