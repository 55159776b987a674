import { Listener } from '../../packages/check/src/actors/listener.js'
import { Member } from '../../packages/check/src/actors/member.js'
import { Publisher } from '../../packages/check/src/actors/publisher.js'
import { judge, type Violation } from '../../packages/check/src/judging/judge.js'
import { createRunRecord, type FaultRecord, type RunRecord } from '../../packages/check/src/judging/record.js'
import type { Rules } from '../../packages/check/src/judging/rules.js'
import type { Mishap } from '../../packages/check/src/playing/faults.js'
import { SeededRandom } from '../../packages/check/src/playing/seeded-random.js'
import { RemoteBroker } from '../../packages/server/src/adapters/brokers/remote/broker.js'
import { FakeServer } from '../../packages/server/test/fake-server.js'
import { ClientListener } from '../checker/clients/client-listener.js'
import { ClientPublisher } from '../checker/clients/client-publisher.js'
import { SEEDED_BROKERS, type SeededBroker, type SeededBrokerName } from './brokers.js'
import { createDrive } from './client-adapter.js'
import { isExcused, isLoss } from './excuses.js'
import { missedInSilence } from './missed.js'
import { Network, type Transcript } from './network.js'
import { installSockets } from './tcp.js'
import { SEEDED_THEMES, type SeededTheme, type SeededThemeName } from './themes.js'
import { VirtualTime } from './virtual-time.js'

const LENGTH_MS = 1_500
const SETTLE_MS = 1_500
/** A link of which nobody tells that it is dead is lost after two heartbeats, and made again within another second. */
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
const MEMBERS_NODE = 'node-0'
const LISTENS = [['#'], ['a.#'], ['b']]
const FIRST_PORT = 9_000
const OPTIONS = { history: ['#=1000'], historyMaxMessages: 1_000, brokerHeartbeatMs: 1_000, drainTimeoutMs: 100 }
/** Of the schedules in which the log loses something. */
const LOSSY_SHARE = 0.4
/** Another epoch may have begun so long before it is seen. */
const EPOCH_SEEN_MS = 5
/** How long a client has no network where nodes have different rules: a log is in dispute for 3 s after they agree. */
const AWAY_MS = [2_500, 4_500] as const
/** Of the processes, where rules are rolled out. */
const OTHER_SHARE = 0.5
/** A share of the actors is of the real client, the others are the checker's own connections. */
const CLIENT_SHARE = 0.5

export interface SeededRun {
  readonly record: RunRecord
  readonly violations: readonly (Violation | Mishap)[]
  readonly transcript: Transcript
  /** Timers that ran. */
  readonly callCount: number
}

/**
 * Plays the schedule of a seed: two nodes, clients, and what goes wrong. The nodes have a real driver, its library and a
 * model of a broker at the other end of virtual TCP connections; or, for `model`, a driver that is a model itself. Some
 * clients are the real one.
 *
 * The sockets of clients end at a fake transport. The transports' own are left out, since they are the kernel's, and of
 * the engine a process of its own: its conformance suite, its fuzzers and test/checker play them (ADR 75).
 */
export async function playSeed(
  seed: number,
  brokerName: SeededBrokerName,
  theme: SeededThemeName = 'anything',
): Promise<SeededRun> {
  const time = new VirtualTime(new SeededRandom(seed, 'chance').next, new SeededRandom(seed, 'pool').next)
  time.install()
  const uninstallSockets = installSockets()
  try {
    const network = new Network(new SeededRandom(seed, 'network').next)
    const { isNew = false } = SEEDED_THEMES[theme] as SeededTheme
    return await play(seed, time, network, SEEDED_BROKERS[brokerName](network, isNew), SEEDED_THEMES[theme])
  } finally {
    uninstallSockets()
    time.uninstall()
  }
}

async function play(
  seed: number,
  time: VirtualTime,
  network: Network,
  broker: SeededBroker,
  {
    logged = ['#'],
    loggedByOthers,
    server,
    listens = LISTENS,
    publisher,
    memberCount = 0,
    isOfMoves = false,
  }: SeededTheme,
): Promise<SeededRun> {
  const hasOtherRules = loggedByOthers !== undefined
  const keep = (pattern: string) => `${pattern}=1000`
  const history = logged.map(keep)
  const historyMaxMessages = logged.length === 0 ? 0 : OPTIONS.historyMaxMessages
  const options = { ...OPTIONS, history, historyMaxMessages, ...server }
  const rules: Rules = { ...RULES, logged, log: logged.length === 0 ? 'none' : 'shared' }
  const random = new SeededRandom(seed, 'schedule')
  const rollout = new SeededRandom(seed, 'rules')
  const record = createRunRecord()
  const nowMs = () => time.nowMs
  const servers = new Map<string, FakeServer>()
  const hosts = new Map<string, string>()
  const stops: Promise<void>[] = []
  let isOver = false
  let processCount = 0
  const create = async (name: string) => {
    // Each process has an address of its own.
    const host = `127.0.1.${++processCount}`
    hosts.set(name, host)
    const own =
      hasOtherRules && rollout.chance(OTHER_SHARE) ? { ...options, history: loggedByOthers.map(keep) } : options
    return new FakeServer(own, { broker: await broker.createBroker(host, own) })
  }
  const start = async (name: string, created = create(name)) => {
    const server = await created
    if (isOver) return
    servers.set(name, server)
    try {
      await server.server.start()
    } catch (cause) {
      // Also a run that ends stops it before the broker is back.
      if (!isOver && servers.get(name) === server) throw cause
      return
    }
    if (!isOver) network.nodes.set(name, server.transport)
  }
  // The first time, modules are loaded meanwhile, which takes real time.
  const first = NODES.map((name) => create(name))
  await Promise.all(first)
  for (const [at, name] of NODES.entries()) {
    network.ports.set(FIRST_PORT + at, name)
    void start(name, first[at])
  }
  await time.run(500)
  const addresses = NODES.map((name, at) => ({ name, url: `ws://127.0.0.1:${FIRST_PORT + at}/ws` }))
  /** Until when a client has no network, by its name. */
  const awayUntilMs = new Map<string, number>()
  const actor = (name: string) => {
    const own = new SeededRandom(seed, name)
    const chooseNode = (previous: string | undefined) => {
      if ((awayUntilMs.get(name) ?? 0) > nowMs()) return undefined
      const up = addresses.filter((address) => network.nodes.has(address.name))
      const others = up.filter((address) => address.name !== previous)
      const choices = others.length > 0 && own.chance(0.7) ? others : up
      return choices.length === 0 ? undefined : own.pick(choices)
    }
    return { name, record, nowMs, random: own.next, chooseNode }
  }
  const failures: Mishap[] = []
  const drive = createDrive((owner, error) => {
    if (!isOver) failures.push({ rule: 'play', atMs: nowMs(), owner, text: String(error) })
  })
  const listeners = listens.map((patterns, at) => {
    const options = { ...actor(`l${at}`), listens: patterns.map((pattern) => ({ pattern, start: 'now' as const })) }
    return random.chance(CLIENT_SHARE) ? new ClientListener({ ...options, drive }) : new Listener(options)
  })
  const publishers = [0, 1].map((at) => {
    const options = { ...actor(`p${at}`), keys: ['a.x', 'b', 'a.y'], everyMs: random.pick([25, 40, 60]), ...publisher }
    return random.chance(CLIENT_SHARE) ? new ClientPublisher({ ...options, drive }) : new Publisher(options)
  })
  // All on one node, while it lives.
  const members = Array.from({ length: memberCount }, (_, at) => {
    const chooseNode = () => addresses.find(({ name }) => name === MEMBERS_NODE && network.nodes.has(name))
    return new Member({ ...actor(`m${at}`), chooseNode, group: 'members', pattern: '#' })
  })
  const fault = (name: string, touches: FaultRecord['touches'], untilMs = nowMs() + 10) =>
    record.faults.push({ name, fromMs: nowMs(), untilMs, touches })
  let { epoch } = broker
  let epochAtMs = 0
  time.onCalled = () => {
    if (broker.epoch === epoch) return
    // It tells of all that was lost since the one before.
    const losses = record.faults.filter(({ name, fromMs }) => isLoss(name) && fromMs >= epochAtMs)
    epochAtMs = nowMs()
    for (const fromMs of [nowMs() - EPOCH_SEEN_MS, ...losses.map((loss) => loss.fromMs)])
      record.faults.push({ name: 'another epoch', fromMs, untilMs: epochAtMs + 10, touches: ['broker-data'] })
    epoch = broker.epoch
  }
  const killNode = (name: string) => {
    const server = servers.get(name)
    if (server === undefined || !network.nodes.has(name)) return
    servers.delete(name)
    network.drop(name)
    network.kill(hosts.get(name) ?? '')
    const awayMs = random.integer(50, 600)
    fault(`kill ${name}`, ['node'], nowMs() + awayMs)
    stops.push(server.server.stop())
    setTimeout(() => void start(name), awayMs)
  }
  /** Whether all nodes have what the broker has sent, a moment after it has sent nothing more. */
  const areUp = () =>
    [...servers.values()].every(({ broker }) => broker instanceof RemoteBroker && broker.status === 'up')
  /**
   * A node that has less than another one vouches for what is left, until that one is back. So a log loses something only
   * when all have what the broker has sent; a busy one may send late.
   */
  const drained = (call: (haveSame: boolean) => void) => {
    const drainMs = broker.drain()
    const haveSame = () =>
      new Set([...servers.values()].map(({ broker }) => JSON.stringify(broker.position?.() ?? ''))).size === 1
    setTimeout(() => call(drainMs === 0 || (areUp() && haveSame())), drainMs)
  }
  const endBroker = () => {
    const lostCount = isLossy && areUp() ? random.pick([1, 3, 8, 40]) : 0
    const awayMs = random.integer(20, 500)
    const end = (haveSame: boolean) => {
      if (!broker.isUp) return
      const lessCount = areUp() && haveSame ? lostCount : 0
      fault(`end the broker, less ${lessCount}`, ['broker'], nowMs() + awayMs)
      broker.end(lessCount)
      setTimeout(() => broker.start(), awayMs)
    }
    if (lostCount > 0 && broker.isUp) drained(end)
    else end(true)
  }
  /** Nobody lives who could say what the log has lost. */
  const endAll = () => {
    if (!areUp() || !broker.isUp) return
    drained((haveSame) => {
      const lessCount = haveSame ? NODES.length : 0
      for (const name of NODES) killNode(name)
      const awayMs = random.integer(20, 500)
      fault(`end the broker, less ${lessCount}`, ['broker', 'broker-data'], nowMs() + awayMs)
      broker.end(lessCount)
      setTimeout(() => broker.start(), awayMs)
    })
  }
  const upset = () => {
    const suffer = (haveSame: boolean) => {
      const done = haveSame ? broker.suffer(random, isLossy) : undefined
      if (done !== undefined) fault(done.name, done.touches, nowMs() + done.forMs)
    }
    if (isLossy) drained(suffer)
    else suffer(true)
  }
  /*
   * Nodes that live vouch for the end of the log. Where it loses its end while nodes are killed or cut off, one that was
   * not told of the end may vouch: docs/guarantees.md, "What is not promised". So it is the one or the other.
   */
  const isLossy = random.chance(LOSSY_SHARE)
  const steps = [
    () => random.pick(listeners).cut(),
    () => random.pick(listeners).move(),
    () => random.pick(listeners).stall(random.integer(20, 300)),
    () => random.pick(listeners).relisten(),
    () => {
      for (const listener of listeners) listener.cut()
    },
    () => random.pick(publishers).cut(),
    upset,
    endBroker,
    isLossy ? endBroker : () => killNode(random.pick(NODES)),
    ...(isLossy ? [endBroker, endAll] : [upset, upset, upset]),
  ]
  if (hasOtherRules) {
    const leave = () => {
      const at = random.integer(0, listeners.length - 1)
      awayUntilMs.set(`l${at}`, nowMs() + random.integer(...AWAY_MS))
      listeners[at]?.cut()
    }
    // Nobody is left who knows which keys were logged; a client comes back after the others have gone.
    for (let count = 0; count < 3; count++) steps.push(() => NODES.forEach(killNode), leave)
  }
  if (isOfMoves) {
    for (let count = 0; count < 6; count++) steps.push(() => random.pick(listeners).move())
    for (let count = 0; count < 3; count++) steps.push(upset)
  }
  const stepCount = random.integer(4, isOfMoves ? 24 : 14)
  for (let count = 0; count < stepCount; count++) setTimeout(() => random.pick(steps)(), random.integer(100, LENGTH_MS))
  const actors = [...listeners, ...publishers, ...members]
  for (const each of actors) each.start()
  await time.run(time.nowMs + LENGTH_MS)
  await time.run(time.nowMs + SETTLE_MS)
  for (const publisher of publishers) publisher.pause()
  await time.run(time.nowMs + QUIET_MS)
  record.endedAtMs = nowMs()
  isOver = true
  network.nodes.clear()
  broker.heal()
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
  const byOtherRules = hasOtherRules ? judge(record, { ...rules, logged: loggedByOthers }) : undefined
  return {
    record,
    violations: [
      ...judge(record, rules).filter((each) => !isExcused(each, record, { isLossy, byOtherRules })),
      ...(hasOtherRules ? missedInSilence(record) : []),
      ...failures,
    ],
    callCount: time.callCount,
    transcript: network.transcript,
  }
}
