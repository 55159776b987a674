import { brokerOptions } from '../../../../packages/conformance/src/index.js'
import { createNatsBroker } from '../../../../packages/server/src/brokers/remote-brokers.js'
import { FakeServer } from '../../../../packages/server/test/fake-server.js'
import { memoryOptions } from '../../../../packages/server/test/memory-options.js'
import { judge, type Violation } from '../../../checker/judge.js'
import { Listener } from '../../../checker/listener.js'
import { Publisher } from '../../../checker/publisher.js'
import { createRunRecord, type FaultRecord, type RunRecord } from '../../../checker/record.js'
import type { Rules } from '../../../checker/rules.js'
import { SeededRandom } from '../../../checker/seeded-random.js'
import { Network } from '../../network.js'
import { installSockets } from '../../tcp.js'
import { VirtualTime } from '../../virtual-time.js'
import { NatsModel } from './model.js'

const LENGTH_MS = 1_500
const SETTLE_MS = 1_500
const QUIET_MS = 6_000
const RULES: Rules = {
  logged: ['#'],
  log: 'shared',
  isDurable: true,
  keeps: { messageCount: 1_000, ageMs: 600_000 },
  dedupe: { windowMs: 120_000, maxIds: 100_000, coversUnlogged: false, isExact: true },
  answerWithinMs: 8_000,
  liveWithinMs: 3_000,
  deliverWithinMs: 2_000,
  settleMs: 4_500,
  leaseMs: 10_000,
}
const NODES = ['node-0', 'node-1']
const OPTIONS = { history: ['#=1000'], historyMaxMessages: 1_000, brokerHeartbeatMs: 1_000, drainTimeoutMs: 100 }
const PORT = 4_222

export interface SeededRun {
  readonly record: RunRecord
  readonly violations: readonly Violation[]
  readonly transcript: { readonly count: number; readonly digest: string }
  readonly log: string[]
}

export async function playSeed(seed: number): Promise<SeededRun> {
  const random = new SeededRandom(seed, 'schedule')
  const time = new VirtualTime(new SeededRandom(seed, 'chance').next)
  time.install()
  const uninstall = installSockets()
  try {
    return await play(seed, random, time)
  } finally {
    uninstall()
    time.uninstall()
  }
}

async function play(seed: number, random: SeededRandom, time: VirtualTime): Promise<SeededRun> {
  const network = new Network(new SeededRandom(seed, 'network').next)
  const work = new SeededRandom(seed, 'work')
  const slowness = random.pick([0, 1, 1, 5, 20])
  const broker = new NatsModel({
    port: PORT,
    hasCluster: random.chance(0.3),
    delayMs: () => (slowness === 0 ? 0 : work.next() * slowness * (work.chance(0.02) ? 20 : 1)),
  })
  const port = { broker, isUp: true }
  network.brokers.set(PORT, port)
  const record = createRunRecord()
  const nowMs = () => time.nowMs
  const servers = new Map<string, FakeServer>()
  const stops: Promise<void>[] = []
  const log: string[] = []
  let isOver = false
  const start = async (name: string) => {
    if (isOver) return
    const options = brokerOptions(memoryOptions(OPTIONS))
    const remote = await createNatsBroker({ ...options, brokerNamespace: 'seeded', broker: `nats://127.0.1.${1 + NODES.indexOf(name)}:${PORT}` })
    const server = new FakeServer(OPTIONS, { broker: remote })
    servers.set(name, server)
    try {
      await server.server.start()
    } catch (cause) {
      if (!isOver && servers.get(name) === server) throw cause
      return
    }
    network.nodes.set(name, server.transport)
  }
  NODES.forEach((name, at) => network.ports.set(8_000 + at, name))
  for (const name of NODES) void start(name)
  for (const endMs = time.realMs() + 10_000; network.nodes.size < NODES.length && time.realMs() < endMs; ) await time.run(time.nowMs + 10)
  const addresses = NODES.map((name, at) => ({ name, url: `ws://localhost:${8_000 + at}/ws` }))
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
  const epochOf = () => /log [\w-]+(?:, generation [\w.-]+)?/.exec(broker.descriptionOf('seeded-log') ?? '')?.[0] ?? epoch
  let epoch = ''
  epoch = epochOf()
  setInterval(() => {
    if (epochOf() === epoch) return
    epoch = epochOf()
    record.faults.push({ name: `another epoch: ${epoch}`, fromMs: nowMs() - 5, untilMs: nowMs() + 10, touches: ['broker-data'] })
  }, 5)
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
  let kept = broker.snapshot()
  const endBroker = (isPutBack: boolean) => {
    if (!port.isUp) return
    const lostCount = isPutBack ? 0 : random.pick([0, 0, 1, 3, 8])
    const awayMs = random.integer(20, 500)
    const name = isPutBack ? 'put data back' : `end the broker, less ${lostCount}`
    fault(name, lostCount > 0 || isPutBack ? ['broker', 'broker-data'] : ['broker'], nowMs() + awayMs)
    port.isUp = false
    broker.kill(lostCount)
    if (isPutBack) broker.restore(kept)
    setTimeout(() => {
      broker.start()
      port.isUp = true
    }, awayMs)
  }
  const leave = (presence: 'gone' | 'silent') => {
    const awayMs = random.integer(20, 1_500)
    fault(`JetStream is ${presence}`, ['broker'], nowMs() + awayMs)
    broker.jetStream = presence
    setTimeout(() => {
      broker.jetStream = 'here'
    }, awayMs)
  }
  const suffer = (kind: 'reset' | 'end' | 'half-open' | 'stall') => () => {
    const sockets = [...network.tcp]
    const forMs = random.integer(50, 1_500)
    fault(`${kind} of a link`, ['broker-links'], nowMs() + (kind === 'half-open' ? 2_000 : kind === 'stall' ? forMs : 10))
    if (sockets.length > 0) random.pick(sockets).suffer(kind, forMs)
  }
  const steps = [
    () => random.pick(listeners).cut(),
    () => random.pick(listeners).move(),
    () => random.pick(listeners).relisten(),
    () => {
      for (const listener of listeners) listener.cut()
    },
    () => random.pick(publishers).cut(),
    () => killNode(random.pick(NODES)),
    suffer('reset'),
    suffer('end'),
    suffer('half-open'),
    suffer('stall'),
    () => endBroker(false),
    () => {
      kept = broker.snapshot()
    },
    () => endBroker(true),
    () => leave('gone'),
    () => leave('silent'),
  ]
  const stepCount = random.integer(4, 14)
  for (let count = 0; count < stepCount; count++) setTimeout(() => random.pick(steps)(), random.integer(100, LENGTH_MS))
  const actors = [...listeners, ...publishers]
  for (const each of actors) each.start()
  const beganMs = time.nowMs
  await time.run(beganMs + LENGTH_MS)
  await time.run(time.nowMs + SETTLE_MS)
  for (const publisher of publishers) publisher.pause()
  await time.run(time.nowMs + QUIET_MS)
  record.endedAtMs = nowMs()
  isOver = true
  for (const each of actors) void each.stop()
  let isStopped = false
  void Promise.allSettled([...stops, ...[...servers.values()].map(({ server }) => server.stop({ drainMs: 0 }))]).then(
    () => {
      isStopped = true
    },
  )
  for (const endMs = time.realMs() + 10_000; !isStopped && time.realMs() < endMs; ) await time.run(time.nowMs + 10)
  if (!isStopped) throw new Error('a node does not stop')
  broker.kill(0)
  for (const [name, { log: lines }] of servers) for (const line of lines) log.push(`${name} ${JSON.stringify(line)}`)
  return { record, violations: judge(record, RULES), transcript: network.transcript, log }
}
