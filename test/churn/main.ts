import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { freePort } from 'webmq-services'
import { playWith } from '../play-options.js'
import { TrafficNode } from '../traffic/node.js'
import { ACTORS, NEEDS_SHARED_LOG } from './actors.js'
import { START } from './brokers.js'
import { differences, look, textOf } from './look.js'
import { type BrokerName, type ChurnOptions, readOptions, USAGE } from './options.js'

/** Logs and caches of limited size are then full, and code is compiled. */
const WARM_UP_SHARE = 1 / 4
const MAX_WARM_UP_SECONDS = 120
const LOOK_SHARE = 3 / 4
const LEASE_MS = 2_000
const FLAGS = [
  ...['--log-level', 'warn', '--log-format', 'json', '--threads', '1', '--stream-lease', `${LEASE_MS}`],
  ...['--history', 'churn.#=200,20s', '--history-max-messages', '2000', '--dedupe-window', '10s'],
  // One machine is all clients: their budgets are not what is tried.
  ...['--work-per-second', '100000000', '--work-burst', '100000000', '--max-streams-per-user', '100000'],
  ...['--max-connections-per-address', '100000'],
]
const MAX_FAILED_SHARE = 0.01
const SHOWN_FAILURES = 5

const say = (text: string) => process.stdout.write(`${text}\n`)

/** @returns 1 when something is left, 2 for options that are none. */
export async function main(args: readonly string[]): Promise<number> {
  return await playWith(args, { usage: USAGE, read: readOptions }, async (options) => {
    const left: string[] = []
    for (const name of options.brokers) left.push(...(await play(name, options)))
    say(left.length === 0 ? 'all is as it was' : `${left.length} things are not as they were:\n  ${left.join('\n  ')}`)
    return left.length === 0 ? 0 : 1
  })
}

/** @returns What is left. */
async function play(name: BrokerName, options: ChurnOptions): Promise<string[]> {
  const broker = await START[name]()
  const nodes: TrafficNode[] = []
  const probe = pathToFileURL(path.join(process.cwd(), 'test/traffic/memory-probe.mjs')).href
  try {
    for (let index = 0; index < broker.nodeCount; index++) {
      const flags = [...FLAGS, ...broker.flagsOf(index)]
      nodes.push(await TrafficNode.start(`${name} ${index + 1}`, await freePort(), flags, probe))
    }
    const left: string[] = []
    const { seconds, restSeconds } = options
    await churn(name, nodes, Math.min(MAX_WARM_UP_SECONDS, seconds * WARM_UP_SHARE), options, 'warm', left)
    await sleep(restSeconds * 1_000)
    const before = await look(broker, nodes)
    say(`${name}, before: ${textOf(before)}`)
    const load = churn(name, nodes, seconds, options, 'load', left)
    await sleep(seconds * LOOK_SHARE * 1_000)
    say(`${name}, under load: ${textOf(await look(broker, nodes))}`)
    await load
    await sleep(restSeconds * 1_000)
    const after = await look(broker, nodes)
    say(`${name}, after: ${textOf(after)}`)
    left.push(...differences(name, before, after))
    for (const node of nodes) {
      left.push(...node.errors().map((line) => `${node.name} logs ${line}`))
      if (node.death !== undefined) left.push(`${node.name} has ${node.death}`)
    }
    return left
  } finally {
    await Promise.allSettled(nodes.map((node) => node.stop()))
    await broker.stop()
  }
}

/** Everybody comes and goes for so long. */
async function churn(
  name: BrokerName,
  nodes: readonly TrafficNode[],
  seconds: number,
  { actorCount }: ChurnOptions,
  title: string,
  left: string[],
): Promise<void> {
  const endMs = performance.now() + seconds * 1_000
  const actors = Object.entries(ACTORS).filter(([actor]) => name !== 'mesh' || !NEEDS_SHARED_LOG.has(actor))
  const failures: string[] = []
  let count = 0
  const nodeOf = () => nodes[Math.floor(Math.random() * nodes.length)] as TrafficNode
  const act = async (index: number) => {
    while (performance.now() < endMs) {
      const number = count++
      const [actor, run] = actors[(index + number) % actors.length] as (typeof actors)[number]
      await run(nodeOf, `${title}-${number}`).catch((error: unknown) => failures.push(`${actor}: ${error}`))
    }
  }
  await Promise.all(Array.from({ length: actorCount }, (_, index) => act(index)))
  say(`${name}: ${count} came and went in ${Math.round(seconds)} s, ${failures.length} failed`)
  if (failures.length > count * MAX_FAILED_SHARE) left.push(`${name}: ${failures.length} of ${count} failed`)
  for (const failure of failures.slice(0, SHOWN_FAILURES)) say(`  ${failure}`)
}
