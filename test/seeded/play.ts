import { Listener } from '../../packages/check/src/actors/listener.js'
import { Publisher } from '../../packages/check/src/actors/publisher.js'
import { judge, type Violation } from '../../packages/check/src/judging/judge.js'
import { createRunRecord, type FaultRecord, type RunRecord } from '../../packages/check/src/judging/record.js'
import type { Rules } from '../../packages/check/src/judging/rules.js'
import { SeededRandom } from '../../packages/check/src/playing/seeded-random.js'
import { brokerOptions } from '../../packages/conformance/src/index.js'
import { RemoteBroker } from '../../packages/server/src/brokers/remote/broker.js'
import { FakeServer } from '../../packages/server/test/fake-server.js'
import { memoryOptions } from '../../packages/server/test/memory-options.js'
import { ModelBroker } from './model-broker.js'
import { Network } from './network.js'
import { VirtualTime } from './virtual-time.js'

const LENGTH_MS = 1_500
const SETTLE_MS = 1_500
const QUIET_MS = 4_000
const RULES: Rules = {
  logged: ['#'],
  log: 'shared',
  isDurable: true,
  keeps: { messageCount: 1_000, ageMs: 600_000 },
  dedupe: { windowMs: 120_000, maxIds: 100_000, coversUnlogged: false, isExact: true },
  answerWithinMs: 8_000,
  liveWithinMs: 3_000,
  deliverWithinMs: 2_000,
  settleMs: 2_500,
  leaseMs: 10_000,
}
const NODES = ['node-0', 'node-1']
const OPTIONS = { history: ['#=1000'], historyMaxMessages: 1_000, brokerHeartbeatMs: 1_000, drainTimeoutMs: 100 }

export interface SeededRun {
  readonly record: RunRecord
  readonly violations: readonly Violation[]
  readonly transcript: readonly string[]
}

/** Plays the schedule of a seed: two nodes on a model of a broker, clients of the checker, and what goes wrong. */
export async function playSeed(seed: number, seedBytes: (random: () => number) => void): Promise<SeededRun> {
  const random = new SeededRandom(seed, 'schedule')
  const chance = new SeededRandom(seed, 'chance')
  seedBytes(chance.next)
  const time = new VirtualTime()
  time.install(chance.next)
  try {
    return await play(seed, random, time)
  } finally {
    time.uninstall()
  }
}

async function play(seed: number, random: SeededRandom, time: VirtualTime): Promise<SeededRun> {
  const network = new Network(new SeededRandom(seed, 'network').next)
  const broker = new ModelBroker()
  const record = createRunRecord()
  const nowMs = () => time.nowMs
  const servers = new Map<string, FakeServer>()
  const stops: Promise<void>[] = []
  let isOver = false
  const start = async (name: string) => {
    if (isOver) return
    const options = brokerOptions(memoryOptions(OPTIONS))
    const server = new FakeServer(OPTIONS, { broker: new RemoteBroker(broker.createDriver(), options) })
    servers.set(name, server)
    try {
      await server.server.start()
    } catch (cause) {
      // Also a run that ends stops it before the broker is back.
      if (!isOver && servers.get(name) === server) throw cause
      return
    }
    network.nodes.set(name, server.transport)
  }
  for (const name of NODES) void start(name)
  await time.run(500)
  const addresses = NODES.map((name) => ({ name, url: `ws://${name}/ws` }))
  const actor = (name: string) => {
    const own = new SeededRandom(seed, name)
    const chooseNode = (previous: string | undefined) => {
      const up = addresses.filter((address) => network.nodes.has(address.name))
      const others = up.filter((address) => address.name !== previous)
      const choices = others.length > 0 && own.chance(0.7) ? others : up
      return choices.length === 0 ? undefined : own.pick(choices)
    }
    return { name, record, nowMs, random: own.next, chooseNode }
  }
  const listeners = ['#', 'a.#', 'b'].map(
    (pattern, at) => new Listener({ ...actor(`l${at}`), listens: [{ pattern, start: 'now' }] }),
  )
  const publishers = [0, 1].map(
    (at) => new Publisher({ ...actor(`p${at}`), keys: ['a.x', 'b', 'a.y'], everyMs: random.pick([25, 40, 60]) }),
  )
  const fault = (name: string, touches: FaultRecord['touches'], untilMs = nowMs() + 10) =>
    record.faults.push({ name, fromMs: nowMs(), untilMs, touches })
  broker.onEpoch = () => fault('another epoch', ['broker-data'])
  const killNode = (name: string) => {
    const server = servers.get(name)
    if (server === undefined || !network.nodes.has(name)) return
    servers.delete(name)
    network.drop(name)
    const awayMs = random.integer(50, 600)
    fault(`kill ${name}`, ['node'], nowMs() + awayMs)
    stops.push(server.server.stop())
    setTimeout(() => void start(name), awayMs)
  }
  const endBroker = () => {
    if (!broker.isUp) return
    const lostCount = random.pick([0, 0, 1, 3, 8])
    const awayMs = random.integer(20, 500)
    fault(`end the broker, less ${lostCount}`, lostCount > 0 ? ['broker', 'broker-data'] : ['broker'], nowMs() + awayMs)
    broker.end(lostCount)
    setTimeout(() => {
      broker.isUp = true
    }, awayMs)
  }
  const steps = [
    () => random.pick(listeners).cut(),
    () => random.pick(listeners).move(),
    () => random.pick(listeners).cut(),
    () => random.pick(listeners).relisten(),
    () => {
      for (const listener of listeners) listener.cut()
    },
    () => random.pick(publishers).cut(),
    () => killNode(random.pick(NODES)),
    () => {
      fault('lose a link', ['broker-links'])
      const links = [...broker.links]
      if (links.length > 0) random.pick(links).lose('cut')
    },
    endBroker,
  ]
  const stepCount = random.integer(4, 14)
  for (let count = 0; count < stepCount; count++) setTimeout(() => random.pick(steps)(), random.integer(100, LENGTH_MS))
  const actors = [...listeners, ...publishers]
  for (const each of actors) each.start()
  await time.run(time.nowMs + LENGTH_MS)
  await time.run(time.nowMs + SETTLE_MS)
  for (const publisher of publishers) publisher.pause()
  await time.run(time.nowMs + QUIET_MS)
  record.endedAtMs = nowMs()
  isOver = true
  broker.isUp = true
  for (const each of actors) void each.stop()
  let isStopped = false
  void Promise.allSettled([...stops, ...[...servers.values()].map(({ server }) => server.stop({ drainMs: 0 }))]).then(
    () => {
      isStopped = true
    },
  )
  // The first time, modules are loaded meanwhile, which takes real time.
  for (const endMs = time.realMs() + 10_000; !isStopped && time.realMs() < endMs; ) await time.run(time.nowMs + 10)
  if (!isStopped) throw new Error('a node does not stop')
  return {
    record,
    violations: judge(record, RULES).filter((each) => !isAgainAfterGap(each)),
    transcript: network.transcript,
  }
}

/**
 * A listener that has moved to a node which lagged gets messages again, from the next log: docs/guarantees.md.
 */
function isAgainAfterGap({ rule, text }: Violation): boolean {
  return rule === 'twice' && text.includes(', and in the log ')
}
